//! Makes of what schemars generates a schema that allows no other keys than the types write.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// The schema of a document, closed, with its name.
pub(super) fn closed(mut schema: Value, name: &str, title: &str) -> Value {
    let definitions = schema["$defs"].clone();
    close(&mut schema, &definitions, false);
    schema["$id"] = json!(format!("urn:gammachi:{name}:1"));
    schema["title"] = json!(title);
    let mut used = BTreeSet::new();
    let root = Value::Object(without_definitions(&schema));
    reach(&root, &schema["$defs"], &mut used);
    if let Some(all) = schema["$defs"].as_object_mut() {
        all.retain(|name, _| used.contains(name));
    }
    schema
}

fn without_definitions(schema: &Value) -> Map<String, Value> {
    let keys = schema.as_object().into_iter().flatten();
    keys.filter(|(key, _)| *key != "$defs").map(|(key, of)| (key.clone(), of.clone())).collect()
}

/// The name of the definition that a schema refers to.
pub(super) fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

fn reach(schema: &Value, definitions: &Value, used: &mut BTreeSet<String>) {
    if let Some(name) = referred(schema)
        && used.insert(name.to_owned())
    {
        reach(&definitions[name], definitions, used);
    }
    match schema {
        Value::Object(keys) => keys.values().for_each(|of| reach(of, definitions, used)),
        Value::Array(items) => items.iter().for_each(|of| reach(of, definitions, used)),
        _ => {}
    }
}

/// Closes a schema and those in it; `open`: it is one of several that describe the same object.
fn close(schema: &mut Value, definitions: &Value, open: bool) {
    let Some(keys) = schema.as_object_mut() else { return };
    // Sizes of numbers in Rust, and what readers assume.
    keys.remove("format");
    keys.remove("default");
    if let Some(Value::String(text)) = keys.get_mut("description") {
        *text = plain(text);
    }
    if keys.contains_key("properties") && keys.contains_key("$ref") {
        inline(keys, definitions);
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(Value::Array(variants)) = keys.get_mut(key) {
            splice(variants, definitions);
        }
    }
    let is_object = keys.contains_key("properties");
    let beside = ["oneOf", "anyOf"].iter().any(|key| keys.contains_key(*key));
    if is_object && !open {
        let key = if beside { "unevaluatedProperties" } else { "additionalProperties" };
        // A map has keys beside those that are described.
        keys.entry(key).or_insert(json!(false));
    }
    for (key, of) in keys {
        match (key.as_str(), of) {
            ("properties" | "$defs", Value::Object(all)) => {
                all.values_mut().for_each(|of| close(of, definitions, false));
            }
            ("prefixItems", Value::Array(all)) => {
                all.iter_mut().for_each(|of| close(of, definitions, false));
            }
            ("oneOf" | "anyOf", Value::Array(all)) => {
                all.iter_mut().for_each(|of| close(of, definitions, is_object));
            }
            ("items" | "additionalProperties", of) => close(of, definitions, false),
            _ => {}
        }
    }
}

/// Replaces a reference among objects that a constant tells apart by the objects that it refers to.
fn splice(variants: &mut Vec<Value>, definitions: &Value) {
    let is_tagged = |of: &Value| {
        let keys = of["properties"].as_object();
        keys.is_some_and(|keys| keys.values().any(|of| of["const"].is_string()))
    };
    if !variants.iter().any(is_tagged) {
        return;
    }
    let inner =
        |of: Value| match referred(&of).and_then(|name| definitions[name]["oneOf"].as_array()) {
            Some(inner) => inner.clone(),
            None => vec![of],
        };
    *variants = std::mem::take(variants).into_iter().flat_map(inner).collect();
}

/// Replaces a reference beside properties by the properties that it refers to.
fn inline(keys: &mut Map<String, Value>, definitions: &Value) {
    let Some(Value::String(name)) = keys.remove("$ref") else { return };
    let definition = &definitions[name.trim_start_matches("#/$defs/")];
    assert!(definition["oneOf"].is_null() && definition["$ref"].is_null(), "{name} has variants");
    if let (Some(Value::Object(to)), Some(from)) =
        (keys.get_mut("properties"), definition["properties"].as_object())
    {
        to.extend(from.clone());
    }
    if let (Some(Value::Array(to)), Some(from)) =
        (keys.get_mut("required"), definition["required"].as_array())
    {
        to.extend(from.clone());
    }
}

/// A doc comment for those who read documents: without links of rustdoc, and null for `None`.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for (number, line) in text.lines().map(str::trim).enumerate() {
        plain.push_str(if number > 0 { " " } else { "" });
        plain.push_str(line);
    }
    for part in plain.clone().split("[`").skip(1) {
        // Links to code, not to pages.
        if let Some((name, rest)) = part.split_once("`]")
            && !rest.starts_with('(')
        {
            let short = name.rsplit("::").next().unwrap_or(name);
            plain = plain.replace(&format!("[`{name}`]"), &format!("`{short}`"));
        }
    }
    let plain = plain.replace(". `None`", ". Null").replace("`None`", "null");
    plain.replace("global seconds", "seconds of the common clock")
}
