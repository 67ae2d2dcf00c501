//! Fields that every interface reads, and what is added to every reply.

use super::*;

fn metadata(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

#[test]
fn the_person_is_the_safety_identifier_first() {
    let body = metadata(&json!({"safety_identifier": "a", "user": "b"}));
    assert_eq!(user_field(&body).unwrap().unwrap().as_str(), "a");
    assert_eq!(user_field(&metadata(&json!({"user": ""}))).unwrap(), None);
    assert!(user_field(&metadata(&json!({"user": 7}))).is_err());
}
