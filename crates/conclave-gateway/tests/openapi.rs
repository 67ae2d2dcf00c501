//! The description of the interface and the route table say the same.

use conclave_gateway::{OPENAPI, ROUTES};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn every_route_is_described_and_nothing_else() {
    let page: Value = serde_json::from_str(OPENAPI).unwrap();
    let described: BTreeSet<(String, String)> = page["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().keys();
            let methods = methods
                .filter(|key| ["get", "post", "put", "patch", "delete"].contains(&key.as_str()));
            methods.map(move |method| (method.clone(), path.clone()))
        })
        .collect();
    let served: BTreeSet<_> =
        ROUTES.iter().map(|route| (route.method.to_owned(), route.path.to_owned())).collect();
    assert_eq!(described, served);
}

#[test]
fn every_reference_leads_somewhere() {
    let page: Value = serde_json::from_str(OPENAPI).unwrap();
    let mut references = Vec::new();
    collect(&page, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(page.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                references.push(reference.clone());
            }
            fields.values().for_each(|inner| collect(inner, references));
        }
        Value::Array(items) => items.iter().for_each(|inner| collect(inner, references)),
        _ => {}
    }
}
