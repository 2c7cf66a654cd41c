use std::str::FromStr;

use anyhow::{Context, ensure};
use tracing_subscriber::{
    EnvFilter, Layer,
    filter::{Directive, LevelFilter},
    fmt,
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::{Arguments, LogFormat};

/// What the client says of watches that fail, with the server's answer as Rust prints it. The kit says it in words.
const CLIENT_WATCHES: &str = "kube_runtime::watcher";

/// Starts logging to standard output, and tracing where that is asked for. What it gives is to be kept until the
/// process ends.
pub(crate) fn start(name: &'static str, arguments: &Arguments) -> anyhow::Result<Traces> {
    let filter = filter(&arguments.log)?;
    let logs = match arguments.log_format {
        LogFormat::Json => {
            fmt::layer().json().flatten_event(true).with_current_span(true).with_span_list(false).boxed()
        }
        LogFormat::Text => fmt::layer().boxed(),
    };
    let traces = Traces::start(name, arguments)?;
    let subscriber = tracing_subscriber::registry().with(filter).with(logs).with(traces.layer());
    subscriber.try_init().context("cannot start logging")?;
    Ok(traces)
}

fn filter(directives: &str) -> anyhow::Result<EnvFilter> {
    let problem = || {
        format!(
            "--log {directives:?} is not understood: give off, error, warn, info, debug or trace, or directives such as \
             info,operator_kit=debug"
        )
    };
    // A lone word that is no level would be taken for the name of a part of the program, and all others be silent.
    let is_level = |word: &str| !word.is_empty() && word.parse::<LevelFilter>().is_ok();
    let is_known =
        directives.split(',').all(|directive| directive.contains(['=', '[']) || is_level(directive));
    ensure!(is_known, problem());
    let filter = EnvFilter::try_new(directives).with_context(problem)?;
    if directives.contains(CLIENT_WATCHES) {
        return Ok(filter);
    }
    Ok(filter.add_directive(Directive::from_str(&format!("{CLIENT_WATCHES}=off"))?))
}

#[cfg(feature = "otlp")]
pub(crate) use otlp::Traces;

#[cfg(feature = "otlp")]
mod otlp {
    use anyhow::Context;
    use opentelemetry::trace::TracerProvider;
    use opentelemetry_otlp::{SpanExporter, WithExportConfig};
    use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
    use tracing::Subscriber;
    use tracing_subscriber::{Layer, registry::LookupSpan};

    use crate::Arguments;

    /// Traces on their way to a collector; what is left is sent when this is dropped.
    pub(crate) struct Traces {
        name: &'static str,
        provider: Option<SdkTracerProvider>,
    }

    impl Traces {
        pub fn start(name: &'static str, arguments: &Arguments) -> anyhow::Result<Self> {
            let Some(endpoint) = &arguments.otlp_endpoint else { return Ok(Self { name, provider: None }) };
            let endpoint = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
            let exporter = SpanExporter::builder().with_http().with_endpoint(&endpoint).build();
            let exporter = exporter.with_context(|| {
                format!(
                    "--otlp-endpoint: {endpoint} cannot be used: give a URL such as http://collector:4318"
                )
            })?;
            let resource = Resource::builder().with_service_name(name).build();
            let provider =
                SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
            Ok(Self { name, provider: Some(provider) })
        }

        pub fn layer<S>(&self) -> Option<impl Layer<S> + use<S>>
        where
            S: Subscriber + for<'span> LookupSpan<'span>,
        {
            let provider = self.provider.as_ref()?;
            Some(tracing_opentelemetry::layer().with_tracer(provider.tracer(self.name)))
        }
    }

    impl Drop for Traces {
        fn drop(&mut self) {
            if let Some(Err(error)) = self.provider.as_ref().map(SdkTracerProvider::shutdown) {
                tracing::warn!("some traces were not sent: {error}");
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use std::{
            io::{Read, Write},
            net::TcpListener,
        };

        use clap::Parser;
        use tracing_subscriber::layer::SubscriberExt;

        use super::*;

        #[derive(Parser)]
        struct Command {
            #[command(flatten)]
            arguments: Arguments,
        }

        #[test]
        fn a_span_reaches_the_collector_when_the_process_ends() {
            let collector = TcpListener::bind("127.0.0.1:0").unwrap();
            let endpoint = format!("http://{}", collector.local_addr().unwrap());
            let received = std::thread::spawn(move || {
                let (mut connection, _) = collector.accept().unwrap();
                let mut request = vec![0; 65_536];
                let mut length = 0;
                while !request[..length].windows(9).any(|part| part == b"reconcile") {
                    length += connection.read(&mut request[length..]).unwrap();
                }
                connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
                String::from_utf8_lossy(&request[..length]).into_owned()
            });
            let command = Command::parse_from(["test", "--settings", "none", "--otlp-endpoint", &endpoint]);
            let traces = Traces::start("a-controller", &command.arguments).unwrap();
            let subscriber = tracing_subscriber::registry().with(traces.layer());
            tracing::subscriber::with_default(subscriber, || {
                tracing::info_span!("reconcile").in_scope(|| {})
            });
            drop(traces);
            let received = received.join().unwrap();
            assert!(
                received.starts_with("POST /v1/traces") && received.contains("a-controller"),
                "{received}"
            );
        }
    }
}

#[cfg(not(feature = "otlp"))]
pub(crate) use off::Traces;

#[cfg(not(feature = "otlp"))]
mod off {
    use tracing_subscriber::layer::Identity;

    use crate::Arguments;

    /// No traces: this binary is built without the feature `otlp`.
    pub(crate) struct Traces;

    impl Traces {
        #[expect(clippy::unnecessary_wraps, reason = "the same signature as with the feature")]
        pub fn start(_name: &'static str, _arguments: &Arguments) -> anyhow::Result<Self> {
            Ok(Self)
        }

        #[expect(clippy::unused_self, reason = "the same signature as with the feature")]
        pub fn layer(&self) -> Identity {
            Identity::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_level_is_refused_and_silences_nothing() {
        for good in ["info", "off", "DEBUG", "info,operator_kit=debug", "operator_kit[pass]=trace"] {
            assert!(filter(good).is_ok(), "{good}");
        }
        for bad in ["verbose", "warning", "", "info,", "info,operator_kit=loud"] {
            let problem = filter(bad).unwrap_err().to_string();
            assert!(
                problem.starts_with("--log ") && problem.contains("info,operator_kit=debug"),
                "{problem}"
            );
        }
    }

    #[test]
    fn the_client_is_heard_where_it_is_asked_for() {
        assert!(filter("info").unwrap().to_string().contains("kube_runtime::watcher=off"));
        assert!(!filter("info,kube_runtime::watcher=debug").unwrap().to_string().contains("off"));
    }
}
