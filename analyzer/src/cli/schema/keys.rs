//! Lists the keys of a document in Markdown: a section for each kind of object, with types and doc comments.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

use serde_json::Value;

use super::close::referred;

/// Length of lines.
const COLUMNS: usize = 120;

/// A page of `docs/reference`, and the level of the sections in its lists.
#[derive(Clone, Copy)]
pub(super) struct Page {
    pub name: &'static str,
    pub level: &'static str,
}

/// Where each kind of object is listed.
#[derive(Default)]
pub(super) struct Known {
    /// Page and title of its section, by its schema.
    sections: BTreeMap<String, (String, String)>,
    /// The key that lists some values, by these values.
    values: BTreeMap<String, String>,
}

struct List<'a> {
    page: &'a str,
    definitions: &'a Value,
    known: &'a mut Known,
    /// Sections to come: titles and objects.
    waiting: VecDeque<(String, &'a Value)>,
    text: String,
}

impl Known {
    /// The keys of a document, listed on a page.
    pub fn list(&mut self, page: Page, schema: &Value) -> String {
        let (definitions, text, waiting) = (&schema["$defs"], String::new(), VecDeque::new());
        let Page { name: page, level } = page;
        let mut list = List { page, definitions, known: self, waiting, text };
        list.object("", schema);
        while let Some((title, of)) = list.waiting.pop_front() {
            write!(list.text, "\n{level} `{title}`\n\n").expect("a text");
            list.paragraph(described(of), "");
            list.text.push('\n');
            list.object(&title, of);
        }
        list.text
    }
}

fn described(schema: &Value) -> &str {
    schema["description"].as_str().unwrap_or("")
}

fn variants(schema: &Value) -> impl Iterator<Item = &Value> {
    schema["oneOf"].as_array().into_iter().chain(schema["anyOf"].as_array()).flatten()
}

/// The key and the value that tell a variant of an object from the others.
fn tag(variant: &Value) -> Option<(&str, &str)> {
    let keys = variant["properties"].as_object()?;
    keys.iter().find_map(|(key, of)| Some((key.as_str(), of["const"].as_str()?)))
}

/// The keys of an object, in the order of the type's fields.
fn keys_of(schema: &Value) -> Vec<(&str, &Value)> {
    let Some(all) = schema["properties"].as_object() else { return Vec::new() };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut keys: Vec<&str> = required.filter(|key| all.contains_key(*key)).collect();
    let others: Vec<&str> =
        all.keys().map(String::as_str).filter(|key| !keys.contains(key)).collect();
    keys.extend(others);
    keys.into_iter().map(|key| (key, &all[key])).collect()
}

impl<'a> List<'a> {
    fn object(&mut self, title: &str, schema: &'a Value) {
        for (key, of) in keys_of(schema) {
            self.key((title, key), of, "");
        }
        for variant in variants(schema) {
            let Some((key, value)) = tag(variant) else { continue };
            self.paragraph(&format!("- `{key}` `{value}`: {}", described(variant)), "  ");
            for (inner, of) in keys_of(variant).into_iter().filter(|(inner, _)| *inner != key) {
                self.key((title, inner), of, "  ");
            }
        }
    }

    fn key(&mut self, (title, key): (&str, &str), of: &'a Value, indent: &str) {
        let path = if title.is_empty() { key.to_owned() } else { format!("{title}.{key}") };
        let shape = self.shape(of, &path);
        let mut text = format!("{indent}- `{key}` ({shape})");
        let inner = self.resolved(of);
        let description = [described(of), described(inner)];
        let description = description.into_iter().find(|text| !text.is_empty()).unwrap_or("");
        let values = self.values(inner, &path);
        if !description.is_empty() || !values.is_empty() {
            write!(text, ": {}", [description, values.as_str()].join(" ").trim()).expect("a text");
        }
        self.paragraph(&text, &format!("{indent}  "));
    }

    /// What a schema is about, behind lists, nulls and references.
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        if let Some(name) = referred(schema) {
            return self.resolved(&self.definitions[name]);
        }
        match &schema["items"] {
            Value::Null => {}
            items => return self.resolved(items),
        }
        match schema["anyOf"].as_array().map(Vec::as_slice) {
            Some([one, null]) if null["type"] == "null" => self.resolved(one),
            _ => schema,
        }
    }

    /// The type of a value in words. Objects get a section, unless they have one.
    fn shape(&mut self, schema: &'a Value, path: &str) -> String {
        if let Some(name) = referred(schema) {
            return self.shape(&self.definitions[name], path);
        }
        if let Some([one, null]) = schema["anyOf"].as_array().map(Vec::as_slice)
            && null["type"] == "null"
        {
            return format!("{} or null", self.shape(one, path));
        }
        let tagged = variants(schema).any(|variant| tag(variant).is_some());
        if schema["properties"].is_object() || tagged {
            return self.reference(schema, path);
        }
        if variants(schema).next().is_some() {
            let mut shapes: Vec<String> = Vec::new();
            for variant in variants(schema) {
                let shape =
                    if is_single(variant) { "object".into() } else { self.shape(variant, path) };
                shapes.extend(Some(shape).filter(|shape| !shapes.contains(shape)));
            }
            return shapes.join(" or ");
        }
        if let Some(all) = schema["prefixItems"].as_array() {
            let items: Vec<String> = all.iter().map(|of| self.shape(of, path)).collect();
            return format!("[{}]{}", items.join(", "), or_null(schema));
        }
        if schema["items"].is_object() {
            let item = self.shape(&schema["items"], path);
            let items = match item.strip_prefix("list ") {
                Some(rest) => format!("list of lists {rest}"),
                None if item.contains(' ') => format!("list: {item}"),
                None => format!("list of {item}s"),
            };
            return items + or_null(schema);
        }
        if schema["additionalProperties"].is_object() {
            return format!("object of {}", self.shape(&schema["additionalProperties"], path));
        }
        match &schema["type"] {
            Value::Array(_) => {
                format!("{}{}", schema["type"][0].as_str().unwrap_or("any"), or_null(schema))
            }
            of => of.as_str().unwrap_or("any").to_owned(),
        }
    }

    fn reference(&mut self, schema: &'a Value, path: &str) -> String {
        // Variants are the same with and without keys that all have.
        let name = match &schema["oneOf"] {
            Value::Null => schema.to_string(),
            variants => variants.to_string().replace("\"additionalProperties\":false,", ""),
        };
        if let Some((page, title)) = self.known.sections.get(&name) {
            return match page == self.page {
                true => format!("like `{title}`"),
                false => format!("like [`{title}`]({page}#{})", title.replace('.', "")),
            };
        }
        self.known.sections.insert(name, (self.page.to_owned(), path.to_owned()));
        self.waiting.push_back((path.to_owned(), schema));
        "object".to_owned()
    }

    /// The values of a text or of an object with one key.
    fn values(&mut self, schema: &'a Value, path: &str) -> String {
        let mut values = Vec::new();
        for variant in variants(schema) {
            let names = variant["enum"].as_array().into_iter().flatten();
            let names = names.chain(Some(&variant["const"])).filter_map(Value::as_str);
            let mut names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
            if is_single(variant)
                && let Some((key, of)) = keys_of(variant).first()
            {
                names.push(format!("`{key}` ({})", self.shape(of, &format!("{path}.{key}"))));
            }
            if names.is_empty() {
                continue;
            }
            let about = described(variant).trim_end_matches('.');
            let colon = if about.is_empty() { "" } else { ": " };
            values.push(format!("{}{colon}{about}", names.join(", ")));
        }
        if values.is_empty() {
            return String::new();
        }
        let values = format!("One of: {}.", values.join("; "));
        match self.known.values.get(&values) {
            Some(other) => format!("One of those of `{other}`."),
            None => {
                self.known.values.insert(values.clone(), path.to_owned());
                values
            }
        }
    }

    /// Adds words in lines that are short enough.
    fn paragraph(&mut self, text: &str, indent: &str) {
        let start = text.len() - text.trim_start().len();
        let mut line = text[..start].to_owned();
        for word in text.split_whitespace() {
            if line.chars().count() + 1 + word.chars().count() > COLUMNS && !line.trim().is_empty()
            {
                self.text.push_str(line.trim_end());
                self.text.push('\n');
                line = indent.to_owned();
            }
            let space = if line.trim().is_empty() { "" } else { " " };
            line.push_str(space);
            line.push_str(word);
        }
        if !line.trim().is_empty() {
            self.text.push_str(&line);
            self.text.push('\n');
        }
    }
}

/// Whether a variant is an object whose only key says which.
fn is_single(variant: &Value) -> bool {
    variant["properties"].as_object().is_some_and(|keys| keys.len() == 1) && tag(variant).is_none()
}

fn or_null(schema: &Value) -> &'static str {
    match schema["type"].as_array().is_some_and(|names| names.iter().any(|name| name == "null")) {
        true => " or null",
        false => "",
    }
}
