use anyhow::Context;
use tracing_subscriber::{EnvFilter, Layer, fmt, layer::SubscriberExt, util::SubscriberInitExt};

use crate::{Arguments, LogFormat};

/// Starts logging to standard output, and tracing where that is asked for. What it gives is to be kept until the
/// process ends.
pub(crate) fn start(name: &'static str, arguments: &Arguments) -> anyhow::Result<Traces> {
    let filter = EnvFilter::try_new(&arguments.log).with_context(|| {
        format!("--log {:?} is not understood: give a level such as info or debug", arguments.log)
    })?;
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
