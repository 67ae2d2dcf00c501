//! Values drawn from a schema: mostly right, sometimes wrong on purpose.

use super::schema::Page;
use serde_json::{Map, Value, json};

/// A small generator of numbers; the same seed draws the same requests.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % sides.max(1) as u64).unwrap()
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }
}

/// Texts that have made trouble elsewhere, and ordinary ones.
const TEXTS: [&str; 14] = [
    "Hello there.",
    "I had a hard day at work.",
    "ana",
    "",
    " ",
    "builtin",
    "\u{202e}gnirts",
    "a\u{0}b",
    "line\r\nset-cookie: x=1",
    "\u{1b}[31mred",
    "<script>alert(1)</script>",
    "𝔘𝔫𝔦 👩‍👩‍👧 日本語",
    "../../etc/passwd",
    "019ff0a2-6c4e-7d21-9b0e-3f6f1f0b7a55",
];

/// Draws a value of a schema; nesting ends after a while.
pub fn value(page: &Page, schema: &Value, dice: &mut Dice, depth: usize) -> Value {
    let schema = page.resolve(schema);
    if let Some(fixed) = schema.get("const") {
        return fixed.clone();
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        return dice.pick(choices).clone();
    }
    for several in ["oneOf", "anyOf"] {
        if let Some(schemas) = schema.get(several).and_then(Value::as_array) {
            let chosen = dice.pick(schemas).clone();
            return value(page, &chosen, dice, depth + 1);
        }
    }
    if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
        let mut whole = Map::new();
        for part in parts {
            if let Value::Object(fields) = value(page, part, dice, depth + 1) {
                whole.extend(fields);
            }
        }
        return Value::Object(whole);
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => dice.pick(kinds).as_str().unwrap_or("string").to_owned(),
        Some(Value::String(kind)) => kind.clone(),
        _ if schema.get("properties").is_some() => "object".to_owned(),
        _ => "string".to_owned(),
    };
    typed(page, schema, &kind, dice, depth)
}

fn typed(page: &Page, schema: &Value, kind: &str, dice: &mut Dice, depth: usize) -> Value {
    let bound = |name: &str| schema.get(name).and_then(Value::as_i64);
    match kind {
        "null" => Value::Null,
        "boolean" => json!(dice.roll(2) == 0),
        "integer" | "number" => {
            let (least, most) = (bound("minimum").unwrap_or(0), bound("maximum").unwrap_or(1000));
            json!(*dice.pick(&[least, most, least + (most - least) / 2]))
        }
        "array" => {
            let least = usize::try_from(bound("minItems").unwrap_or(0)).unwrap();
            let many = if depth > 6 { least } else { least + dice.roll(3) };
            let items = schema.get("items").cloned().unwrap_or(json!({"type": "string"}));
            (0..many).map(|_| value(page, &items, dice, depth + 1)).collect()
        }
        "object" => object(page, schema, dice, depth),
        _ => json!(*dice.pick(&TEXTS)),
    }
}

fn object(page: &Page, schema: &Value, dice: &mut Dice, depth: usize) -> Value {
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut fields = Map::new();
    let known = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    for (name, inner) in known {
        let needed = required.iter().any(|one| one == name.as_str());
        if needed || (depth < 4 && dice.roll(3) == 0) {
            let drawn = match name.as_str() {
                // A model that exists, most of the time: beyond it there is more to try.
                "model" if dice.roll(4) > 0 => json!("builtin"),
                _ => value(page, &inner, dice, depth + 1),
            };
            fields.insert(name, drawn);
        }
    }
    Value::Object(fields)
}

/// The value with something wrong in it, somewhere.
pub fn spoiled(mut whole: Value, dice: &mut Dice) -> Value {
    let odd = [
        Value::Null,
        json!([]),
        json!({}),
        json!(-1),
        json!(u64::MAX),
        json!(1e308),
        json!("x".repeat(5000)),
        json!([[[[[[[[[[1]]]]]]]]]]),
        json!({"$ref": "#/"}),
        json!(true),
    ];
    let wrong = dice.pick(&odd).clone();
    spoil(&mut whole, wrong, dice);
    whole
}

fn spoil(place: &mut Value, wrong: Value, dice: &mut Dice) {
    let deeper = dice.roll(2) == 0;
    match place {
        Value::Object(fields) if !fields.is_empty() => {
            let at = dice.roll(fields.len());
            let name = fields.keys().nth(at).cloned().unwrap();
            match (deeper, dice.roll(3)) {
                (true, _) => spoil(fields.get_mut(&name).unwrap(), wrong, dice),
                (false, 0) => drop(fields.remove(&name)),
                (false, 1) => drop(fields.insert("surprise".to_owned(), wrong)),
                (false, _) => drop(fields.insert(name, wrong)),
            }
        }
        Value::Array(list) if deeper && !list.is_empty() => {
            let at = dice.roll(list.len());
            spoil(&mut list[at], wrong, dice);
        }
        other => *other = wrong,
    }
}

/// Bytes that are no use as a body.
pub fn broken(body: &str, dice: &mut Dice) -> Vec<u8> {
    let half = body.len() / 2;
    match dice.roll(7) {
        0 => Vec::new(),
        1 => body.as_bytes()[..half].to_vec(),
        2 => [b"\xff\xfe".as_slice(), body.as_bytes()].concat(),
        3 => format!("{}{body}{}", "[".repeat(100), "]".repeat(100)).into_bytes(),
        4 => format!("{{\"a\":1,\"a\":{body}}}").into_bytes(),
        5 => format!("{body}{body}").into_bytes(),
        _ => b"\x1f\x8b\x08\x00\x00\x00\x00\x00".to_vec(),
    }
}
