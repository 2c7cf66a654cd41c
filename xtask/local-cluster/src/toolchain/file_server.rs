//! A file server for tests, on loopback, that fails in the ways of real ones.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
};

/// What a path is answered with; every other one with 404.
pub enum Answer {
    File(Vec<u8>),
    MovedTo(&'static str),
    /// Half of the file, and then the end of the connection.
    Cut(Vec<u8>),
    /// Half of the file, and then nothing.
    Stalled(Vec<u8>),
    Silence,
}

pub struct FileServer {
    pub url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl FileServer {
    pub fn start<const N: usize>(answers: [(&'static str, Answer); N]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answers, noted) = (BTreeMap::from(answers), Arc::clone(&asked));
        thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                let request = lines.next().unwrap_or_default();
                lines.find(String::is_empty);
                let path = request.split(' ').nth(1).unwrap_or_default();
                noted.lock().unwrap().push(path.to_owned());
                let head = |length| {
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")
                };
                let (answer, stays_open) = match answers.get(path) {
                    Some(Answer::File(file)) => ([head(file.len()).as_bytes(), file].concat(), false),
                    Some(Answer::Cut(file)) => ([head(file.len()).as_bytes(), &file[..file.len() / 2]].concat(), false),
                    Some(Answer::Stalled(file)) => ([head(file.len()).as_bytes(), &file[..file.len() / 2]].concat(), true),
                    Some(Answer::Silence) => (Vec::new(), true),
                    Some(Answer::MovedTo(path)) => (format!("HTTP/1.1 302 Found\r\nLocation: {path}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into(), false),
                    None => (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(), false),
                };
                // A client may leave early.
                stream.write_all(&answer).ok();
                open.extend(stays_open.then_some(stream));
            }
        });
        Self { url, asked }
    }

    /// The paths of all requests.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}
