//! A tool in Rust, without any crate: the longest line of a file. See README.md for how it is built.
use std::{env, fs, io, path::Path};

const MANIFEST: &str = r#"{"name":"longest_line","description":"The longest line of a text file.",
"parameters":{"type":"object","properties":{"file":{"type":"string"}},"required":["file"]}}"#;

fn main() {
    if env::args().nth(1).as_deref() == Some("--describe") {
        println!("{}", MANIFEST.replace('\n', ""));
        return;
    }
    let call = read_line();
    let id = field(&call, "id").expect("a call has an id");
    match longest_line(&call, &id) {
        Ok(text) => println!(r#"{{"type":"result","id":"{id}","output":{}}}"#, quote(&text)),
        Err(why) => println!(r#"{{"type":"error","id":"{id}","message":{}}}"#, quote(&why)),
    }
}

fn longest_line(call: &str, id: &str) -> Result<String, String> {
    let file = field(call, "file").ok_or("there is no file")?;
    let directory = field(call, "directory").ok_or("there is no directory")?;
    let path = Path::new(&directory).join(file);
    let shown = quote(&path.to_string_lossy());
    // Nothing is touched before the reply.
    println!(r#"{{"type":"ask","id":"{id}","ask":"1","permission":"read","patterns":[{shown}],"paths":[{shown}]}}"#);
    let reply = read_line();
    if !reply.contains(r#""allowed":true"#) {
        return Err(field(&reply, "message").unwrap_or("not allowed".into()));
    }
    let text = fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))?;
    let longest = text.lines().max_by_key(|line| line.chars().count());
    Ok(longest.unwrap_or("").into())
}

fn read_line() -> String {
    let mut line = String::new();
    io::stdin().read_line(&mut line).expect("standard input is open");
    line
}

/// The text that follows `"name":` for the first time. Enough for lines whose keys are known; a real tool takes `serde_json`.
fn field(line: &str, name: &str) -> Option<String> {
    let key = format!(r#""{name}":""#);
    let start = line.find(&key)? + key.len();
    let mut text = String::new();
    let mut letters = line[start..].chars();
    loop {
        match letters.next()? {
            '"' => return Some(text),
            '\\' => match letters.next()? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'u' => {
                    let code: String = letters.by_ref().take(4).collect();
                    text.push(char::from_u32(u32::from_str_radix(&code, 16).ok()?)?)
                }
                letter => text.push(letter),
            },
            letter => text.push(letter),
        }
    }
}

fn quote(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter < ' ' => quoted.push_str(&format!("\\u{:04x}", letter as u32)),
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}
