//! How the program reaches a cluster, and how it ends while it cannot.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

/// Time after which a program that should have ended is given up.
const LIMIT: Duration = Duration::from_secs(20);
/// A refusal of a proxy.
const FORBIDDEN: &str = "403 Forbidden";

/// The program with a kubeconfig of its own, and without any proxy.
fn catena(test: &str, kubeconfig: &str, arguments: &[&str]) -> io::Result<Command> {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("connects-{test}"));
    fs::write(&path, kubeconfig)?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-catena"));
    for name in ["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy"] {
        command.env_remove(name);
    }
    command.args(arguments).env("KUBECONFIG", path);
    // Without an answer of the name server, a name is given up early.
    command.env("RES_OPTIONS", "timeout:1 attempts:1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

/// A kubeconfig of one cluster, with more fields of the cluster.
fn kubeconfig(server: &str, more: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: {{server: \"{server}\"{more}}}}}]\n\
         users: [{{name: c, user: {{}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: c}}}}]\n"
    )
}

fn loopback() -> io::Result<(TcpListener, String)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    Ok((listener, address))
}

/// The lines of a request before its body.
fn head(stream: &mut BufReader<TcpStream>) -> Vec<String> {
    let lines = stream.lines().map_while(Result::ok);
    lines.take_while(|line| !line.is_empty()).map(|line| line.to_lowercase()).collect()
}

/// A proxy that answers one request for a connection, which then leads to itself, and tells that request and the next one.
fn proxy(answer: &'static str) -> io::Result<(String, Receiver<Vec<String>>)> {
    let (listener, address) = loopback()?;
    let (told, heads) = mpsc::channel();
    thread::spawn(move || {
        let Ok((stream, _)) = listener.accept() else { return };
        let Ok(mut answers) = stream.try_clone() else { return };
        let mut stream = BufReader::new(stream);
        told.send(head(&mut stream)).ok();
        answers.write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes()).ok();
        if answer == FORBIDDEN {
            return;
        }
        told.send(head(&mut stream)).ok();
    });
    Ok((address, heads))
}

fn ended(child: &mut Child) -> io::Result<ExitStatus> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if begun.elapsed() > LIMIT {
            child.kill()?;
            return Err(io::Error::other("the program has not ended"));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Ends a program as Ctrl-C does; a shell in the background lets its children ignore SIGINT itself.
fn end(child: &Child) -> io::Result<ExitStatus> {
    send("-TERM", child)
}

fn send(signal: &str, child: &Child) -> io::Result<ExitStatus> {
    Command::new("kill").args([signal, &child.id().to_string()]).status()
}

/// The number of SIGTERM; a shell reports it as 143.
const TERMINATED: Option<i32> = Some(15);

#[test]
fn the_proxy_of_the_kubeconfig_is_used_and_the_program_names_itself() {
    let (address, heads) = proxy("200 OK").unwrap();
    let kubeconfig = kubeconfig("http://cluster.example:8080", &format!(", proxy-url: \"http://{address}\""));
    let mut catena = catena("proxy-url", &kubeconfig, &["tree", "web", "--as", "bob"]).unwrap();
    // As for kubectl, it is for the proxies of the environment.
    let mut child = catena.env("NO_PROXY", "cluster.example").spawn().unwrap();
    assert_eq!(heads.recv_timeout(LIMIT).unwrap()[0], "connect cluster.example:8080 http/1.1");
    let request = heads.recv_timeout(LIMIT).unwrap();
    let version = concat!("user-agent: kubectl-catena/", env!("CARGO_PKG_VERSION"));
    for expected in [version, "impersonate-user: bob"] {
        assert!(request.iter().any(|line| line == expected), "{expected} is not in {request:?}");
    }
    ended(&mut child).unwrap();
}

#[test]
fn the_proxy_of_the_environment_is_used_unless_the_server_needs_none() {
    for (no_proxy, is_used) in [("127.0.0.1,other.example", true), ("cluster.example", false)] {
        let (address, heads) = proxy(FORBIDDEN).unwrap();
        let kubeconfig = kubeconfig("https://cluster.example:6443", "");
        let mut catena = catena(&format!("environment-{is_used}"), &kubeconfig, &["tree", "web"]).unwrap();
        let mut child = catena.env("HTTPS_PROXY", &address).env("NO_PROXY", no_proxy).spawn().unwrap();
        assert_eq!(ended(&mut child).unwrap().code(), Some(1));
        let head = heads.try_recv().ok();
        let expected = is_used.then(|| "connect cluster.example:6443 http/1.1".to_owned());
        assert_eq!(head.map(|lines| lines[0].clone()), expected);
    }
}

#[test]
fn a_socks_proxy_is_spoken_to_in_its_protocol() {
    let (listener, address) = loopback().unwrap();
    let kubeconfig =
        kubeconfig("https://cluster.example:6443", &format!(", proxy-url: \"socks5://{address}\""));
    let mut child = catena("socks5", &kubeconfig, &["tree", "web"]).unwrap().spawn().unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut version = [0];
    stream.read_exact(&mut version).unwrap();
    assert_eq!(version, [5]);
    drop((stream, listener));
    assert_eq!(ended(&mut child).unwrap().code(), Some(1));
}

#[test]
fn a_signal_ends_the_program_while_the_server_is_silent() {
    let commands = [&["backup", "folder"][..], &["upgrade", "migrate", "basicdeployments"], &["tree", "web"]];
    for (index, arguments) in commands.into_iter().enumerate() {
        let (listener, address) = loopback().unwrap();
        let kubeconfig = kubeconfig(&format!("http://{address}"), "");
        let mut child = catena(&format!("silent-{index}"), &kubeconfig, arguments).unwrap().spawn().unwrap();
        let _silent = listener.accept().unwrap();
        assert!(end(&child).unwrap().success());
        assert_eq!(ended(&mut child).unwrap().signal(), TERMINATED, "{arguments:?}");
    }
}

/// A server that answers these paths, without their parameters, and is silent about all others, which it tells.
fn server(answer: fn(&str) -> Option<String>) -> io::Result<(String, Receiver<String>)> {
    let (listener, address) = loopback()?;
    let (told, silences) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let told = told.clone();
            thread::spawn(move || -> io::Result<()> {
                let mut answers = stream.try_clone()?;
                let mut stream = BufReader::new(stream);
                loop {
                    let head = head(&mut stream);
                    let Some(request) = head.first() else { return Ok(()) };
                    let length =
                        head.iter().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                    io::copy(&mut stream.by_ref().take(length.unwrap_or(0)), &mut io::sink())?;
                    let (method, rest) = request.split_once(' ').unwrap_or_default();
                    let path = rest.split(['?', ' ']).next().unwrap_or_default();
                    let Some(body) = answer(&format!("{method} {path}")) else {
                        told.send(format!("{method} {path}")).ok();
                        continue;
                    };
                    let length = body.len();
                    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length:";
                    answers.write_all(format!("{head} {length}\r\n\r\n{body}").as_bytes())?;
                }
            });
        }
    });
    Ok((address, silences))
}

/// A list, whether of kinds or of objects.
fn empty() -> String {
    r#"{"kind": "List", "apiVersion": "v1", "metadata": {}, "items": []}"#.to_owned()
}

#[test]
fn a_signal_ends_a_check_before_it_has_created_anything() {
    let (address, silences) =
        server(|request| matches!(request, "get /api" | "get /apis").then(empty)).unwrap();
    let definition = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds");
    let arguments = ["upgrade", "check", definition];
    let mut child = catena("listing", &kubeconfig(&format!("http://{address}"), ""), &arguments).unwrap();
    let mut child = child.spawn().unwrap();
    let silent = silences.recv_timeout(LIMIT).unwrap();
    assert_eq!(silent, "get /apis/apiextensions.k8s.io/v1/customresourcedefinitions");
    assert!(end(&child).unwrap().success());
    assert_eq!(ended(&mut child).unwrap().signal(), TERMINATED);
}

#[test]
fn a_signal_ends_the_program_while_it_reads_standard_input() {
    for arguments in [&["upgrade", "check", "-"][..], &["templates", "check", "-f", "-"]] {
        let kubeconfig = kubeconfig("http://127.0.0.1:1", "");
        let mut child = catena(arguments[0], &kubeconfig, arguments).unwrap().spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(b"a: 1\n").unwrap();
        assert!(end(&child).unwrap().success());
        assert_eq!(ended(&mut child).unwrap().signal(), TERMINATED, "{arguments:?}");
    }
}

/// A server with a few kinds that has no objects, takes a namespace, and is silent about all other changes.
fn kinds(request: &str) -> Option<String> {
    let kind = |plural: &str, kind: &str, scope: &str| {
        format!(
            r#"{{"resource": "{plural}", "responseKind": {{"group": "", "version": "", "kind": "{kind}"}}, "scope": "{scope}",
            "singularResource": "", "verbs": ["get", "list"]}}"#
        )
    };
    let group = |name: &str, kinds: &[String]| {
        format!(
            r#"{{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {{}}, "items": [
            {{"metadata": {{"name": "{name}"}}, "versions": [{{"version": "v1", "resources": [{}]}}]}}]}}"#,
            kinds.join(", ")
        )
    };
    let schema = |group: &str, kind: &str| {
        format!(
            r#"{{"components": {{"schemas": {{"x": {{"x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-group-version-kind": [{{"group": "{group}", "version": "v1", "kind": "{kind}"}}]}}}}}}}}"#
        )
    };
    let core = ["pods", "configmaps"].map(|plural| kind(plural, plural, "Namespaced"));
    Some(match request {
        "get /api" => group("", &[&core[..], &[kind("namespaces", "Namespace", "Cluster")]].concat()),
        "get /apis" => group("apps", &[kind("deployments", "Deployment", "Namespaced")]),
        "get /openapi/v3/apis/apps/v1" => schema("apps", "Deployment"),
        "get /openapi/v3/api/v1" => schema("", "Namespace"),
        "post /api/v1/namespaces" => r#"{"metadata": {"uid": "u"}}"#.to_owned(),
        request if request.contains("customresourcedefinitions") => "null".to_owned(),
        request if request.starts_with("get ") => empty(),
        _ => return None,
    })
}

/// The same command, which the end of the terminal does not end.
fn under_nohup(command: &Command) -> Command {
    let mut under = Command::new("nohup");
    under.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => under.env(name, value),
            None => under.env_remove(name),
        };
    }
    under.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    under
}

#[test]
fn the_namespace_of_trials_is_removed_though_nobody_reads_of_it_and_the_terminal_is_gone() {
    let (template, wanted) = ("connects-template.yaml", "delete /api/v1/namespaces/contract-check-");
    let template = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(template);
    let manifest = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: web, image: web}]}}}}";
    fs::write(&template, manifest).unwrap();
    let arguments = ["contract", "check", "deployments", "--live", "--template", template.to_str().unwrap()];
    for (signal, nohup) in [("-TERM", false), ("-HUP", false), ("-HUP", true)] {
        let (address, silences) = server(kinds).unwrap();
        let kubeconfig = kubeconfig(&format!("http://{address}"), "");
        let mut command = catena("removed", &kubeconfig, &arguments).unwrap();
        if nohup {
            command = under_nohup(&command);
        }
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
        let told = |wanted: &str, limit: Duration| {
            let begun = Instant::now();
            std::iter::from_fn(|| silences.recv_timeout(limit.saturating_sub(begun.elapsed())).ok())
                .any(|request| request.starts_with(wanted))
        };
        assert!(told("patch ", LIMIT), "{said}");
        assert!(send(signal, &child).unwrap().success());
        if nohup {
            assert!(!told(wanted, Duration::from_secs(1)), "a hangup that is ignored ends nothing");
            assert!(end(&child).unwrap().success());
        }
        assert!(told(wanted, LIMIT), "{signal}: {:?}", child.try_wait());
        if signal == "-HUP" {
            // A shell says it to its jobs before the terminal does.
            assert!(send(signal, &child).unwrap().success());
            thread::sleep(Duration::from_secs(1));
            assert!(child.try_wait().unwrap().is_none(), "the namespace is being removed");
        }
        // Nobody answers, and whoever asks twice does not want to wait.
        assert!(end(&child).unwrap().success());
        assert_eq!(ended(&mut child).unwrap().code(), Some(1), "{signal}");
    }
}

#[test]
fn a_cluster_wide_kind_cannot_be_a_child() {
    let (address, _silences) = server(kinds).unwrap();
    let kubeconfig = kubeconfig(&format!("http://{address}"), "");
    let mut child =
        catena("wide", &kubeconfig, &["contract", "check", "namespaces"]).unwrap().spawn().unwrap();
    let status = ended(&mut child).unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("Namespace is cluster-wide"), "{said}");
}

#[test]
fn an_empty_name_of_a_context_does_not_hide_that_of_the_next_file() {
    let (address, silences) = server(|_| None).unwrap();
    let mut catena = catena("next", &kubeconfig(&format!("http://{address}"), ""), &["tree", "web"]).unwrap();
    let [first, next] =
        ["connects-empty", "connects-next"].map(|name| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name));
    fs::write(&first, "apiVersion: v1\nkind: Config\ncurrent-context: \"\"\n").unwrap();
    let both = std::env::join_paths([first, next]).unwrap();
    let mut child = catena.env("KUBECONFIG", both).spawn().unwrap();
    assert!(silences.recv_timeout(LIMIT).is_ok(), "{:?}", ended(&mut child));
    assert!(end(&child).unwrap().success());
    ended(&mut child).unwrap();
}
