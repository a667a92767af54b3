//! Compares JSON with a schema, as far as ours need it.

use std::collections::BTreeSet;

use serde_json::Value;

/// What says nothing about a value.
const ANNOTATIONS: [&str; 5] = ["$schema", "$id", "$defs", "title", "description"];

/// How a value differs from what its schema says: places and reasons.
pub fn violations(root: &Value, value: &Value) -> Vec<String> {
    let mut comparison = Comparison { root, found: Vec::new() };
    comparison.check(root, value, "");
    comparison.found
}

struct Comparison<'a> {
    root: &'a Value,
    found: Vec<String>,
}

impl Comparison<'_> {
    fn expect(&mut self, holds: bool, at: &str, why: impl FnOnce() -> String) {
        if !holds {
            self.found.push(format!("{at}: {}", why()));
        }
    }

    /// Checks a value; returns the keys that the schema describes.
    fn check(&mut self, schema: &Value, value: &Value, at: &str) -> BTreeSet<String> {
        let mut described = BTreeSet::new();
        let Some(keywords) = schema.as_object() else {
            self.expect(*schema == Value::Bool(true), at, || "is not described".into());
            return described;
        };
        // Those that look at what others describe come last.
        for (keyword, of) in keywords.iter().filter(|(key, _)| *key != "unevaluatedProperties") {
            match keyword.as_str() {
                "$ref" => {
                    let pointer =
                        of.as_str().and_then(|of| of.strip_prefix('#')).expect("a reference");
                    let schema = self.root.pointer(pointer).expect("a definition");
                    described.extend(self.check(schema, value, at));
                }
                "oneOf" | "anyOf" => described.extend(self.check_variants(of, value, at)),
                "properties" | "required" | "additionalProperties" => {
                    described.extend(self.check_keys((keyword, of), schema, value, at));
                }
                "items" | "prefixItems" | "minItems" | "maxItems" => {
                    self.check_items((keyword, of), value, at);
                }
                _ if ANNOTATIONS.contains(&keyword.as_str()) => {}
                _ => self.check_scalar((keyword, of), value, at),
            }
        }
        if keywords.get("unevaluatedProperties") == Some(&Value::Bool(false)) {
            for key in value.as_object().into_iter().flatten().map(|(key, _)| key) {
                self.expect(described.contains(key), at, || format!("{key} is not described"));
            }
        }
        described
    }

    /// One of several schemas holds; of none, the nearest one's violations.
    fn check_variants(&mut self, schemas: &Value, value: &Value, at: &str) -> BTreeSet<String> {
        let tries = schemas.as_array().expect("a list").iter().map(|schema| {
            let mut comparison = Comparison { root: self.root, found: Vec::new() };
            let described = comparison.check(schema, value, at);
            (comparison.found, described)
        });
        let (found, described) = tries.min_by_key(|(found, _)| found.len()).expect("a variant");
        self.found.extend(found);
        described
    }

    fn check_keys(
        &mut self,
        (keyword, of): (&str, &Value),
        schema: &Value,
        value: &Value,
        at: &str,
    ) -> BTreeSet<String> {
        let mut described = BTreeSet::new();
        let Some(keys) = value.as_object() else { return described };
        match keyword {
            "properties" => {
                for (key, schema) in of.as_object().expect("properties") {
                    if let Some(value) = keys.get(key) {
                        self.check(schema, value, &format!("{at}.{key}"));
                        described.insert(key.clone());
                    }
                }
            }
            "required" => {
                for key in of.as_array().into_iter().flatten().filter_map(Value::as_str) {
                    self.expect(keys.contains_key(key), at, || format!("{key} is missing"));
                }
            }
            _ => {
                let others = keys.iter().filter(|(key, _)| schema["properties"].get(key).is_none());
                for (key, value) in others {
                    self.check(of, value, &format!("{at}.{key}"));
                    described.insert(key.clone());
                }
            }
        }
        described
    }

    fn check_items(&mut self, (keyword, of): (&str, &Value), value: &Value, at: &str) {
        let Some(items) = value.as_array() else { return };
        let number = of.as_u64().unwrap_or(0) as usize;
        match keyword {
            "items" => {
                let items = items.iter().enumerate();
                items.for_each(|(index, item)| _ = self.check(of, item, &format!("{at}[{index}]")));
            }
            "prefixItems" => {
                let both = of.as_array().into_iter().flatten().zip(items).enumerate();
                both.for_each(|(index, (of, item))| {
                    _ = self.check(of, item, &format!("{at}[{index}]"))
                });
            }
            "minItems" => self.expect(items.len() >= number, at, || format!("fewer than {number}")),
            _ => self.expect(items.len() <= number, at, || format!("more than {number}")),
        }
    }

    fn check_scalar(&mut self, (keyword, of): (&str, &Value), value: &Value, at: &str) {
        let is = |name: &Value| match name.as_str().expect("a type") {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("unknown type {other}"),
        };
        let bound = || value.as_f64().zip(of.as_f64());
        let holds = match keyword {
            "type" => of.as_array().map_or_else(|| is(of), |names| names.iter().any(is)),
            "const" => value == of,
            "enum" => of.as_array().expect("a list").contains(value),
            "minimum" => bound().is_none_or(|(value, bound)| value >= bound),
            "maximum" => bound().is_none_or(|(value, bound)| value <= bound),
            _ => panic!("{at}: this test does not know the keyword {keyword}"),
        };
        self.expect(holds, at, || format!("{value} against {keyword} {of}"));
    }
}
