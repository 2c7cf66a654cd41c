//! The connection to a cluster, by the options of kubectl.

use std::{collections::HashMap, path::PathBuf, time::Duration};

use anyhow::{Context, Result, ensure};
use catena_terminal::parse_duration;
use clap::Args;
use http::{HeaderValue, header::USER_AGENT};
use kube::{
    Client, Config,
    config::{AuthInfo, KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use operator_watch::ObjectId;

use crate::{Kinds, errors, proxy};

/// A reachable API server answers sooner.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How this program names itself in each request.
const PROGRAM: &str = concat!("kubectl-catena/", env!("CARGO_PKG_VERSION"));

/// The cluster, the user and the namespace.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Cluster")]
pub struct Options {
    /// The kubeconfig file
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// The cluster of the kubeconfig, instead of the context's
    #[arg(long, global = true, value_name = "NAME")]
    pub cluster: Option<String>,
    /// The user of the kubeconfig, instead of the context's
    #[arg(long, global = true, value_name = "NAME")]
    pub user: Option<String>,
    /// The namespace, instead of the context's
    #[arg(short, long, global = true, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Time after which a request without an answer is given up, for example 5s
    #[arg(long, global = true, value_name = "DURATION", value_parser = parse_duration)]
    pub request_timeout: Option<Duration>,
    /// The user to act as, for example system:serviceaccount:catena-system:command-binder
    #[arg(id = "as", long = "as", global = true, value_name = "USER")]
    pub acts_as: Option<String>,
    /// A group to act as; can be given several times
    #[arg(id = "as-group", long = "as-group", global = true, value_name = "GROUP")]
    pub as_groups: Vec<String>,
    /// The uid to act as
    #[arg(id = "as-uid", long = "as-uid", global = true, value_name = "UID")]
    pub as_uid: Option<String>,
}

/// A cluster that has answered.
#[derive(Clone)]
pub struct Cluster {
    /// As the user.
    pub client: Client,
    /// The namespace of all look-ups.
    pub namespace: String,
    /// The kinds that the server has.
    pub kinds: Kinds,
}

impl Options {
    /// Connects, and reads the kinds of the server.
    pub async fn connect(&self) -> Result<Cluster> {
        let mut config = self.config().await?;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        if let Some(limit) = self.limit() {
            config.read_timeout = Some(limit);
            config.connect_timeout = Some(limit.min(CONNECT_TIMEOUT));
        }
        self.impersonate(&mut config.auth_info)?;
        config.headers.push((USER_AGENT, HeaderValue::from_static(PROGRAM)));
        // A person waits: report the failure at once, and leave the retry to them.
        config.default_retry = false;
        let namespace = self.namespace_or(&config.default_namespace)?;
        let server = config.cluster_url.to_string();
        let client = Client::try_from(config).context("the kubeconfig cannot be used")?;
        let kinds = Kinds::discover(&client).await.map_err(|error| errors::no_answer(&server, error))?;
        Ok(Cluster { client, namespace, kinds })
    }

    /// The time limit of a request; as for kubectl, zero is none.
    fn limit(&self) -> Option<Duration> {
        self.request_timeout.filter(|limit| !limit.is_zero())
    }

    fn namespace_or(&self, default: &str) -> Result<String> {
        let named = [self.namespace.as_deref().unwrap_or_default(), default, "default"];
        let namespace = named.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        ensure!(
            ObjectId::is_name(namespace),
            "{namespace:?} is not a namespace: correct --namespace or the context"
        );
        Ok(namespace.to_owned())
    }

    /// The kubeconfig as kubectl reads it: of the files in KUBECONFIG, those that are there.
    ///
    /// # Errors
    /// When there is none, or one cannot be read.
    pub fn kubeconfig(&self) -> Result<Kubeconfig, KubeconfigError> {
        if let Some(path) = &self.kubeconfig {
            return Kubeconfig::read_from(path);
        }
        let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
        let mut there = std::env::split_paths(&listed).filter(|path| path.exists()).peekable();
        if there.peek().is_none() {
            return Kubeconfig::read();
        }
        there.try_fold(Kubeconfig::default(), |merged, path| {
            let mut read = Kubeconfig::read_from(path)?;
            read.current_context.take_if(|name| name.is_empty());
            merged.merge(read)
        })
    }

    async fn config(&self) -> Result<Config> {
        let Self { context, cluster, user, .. } = self.clone();
        let options = KubeConfigOptions { context, cluster, user };
        let read = self.kubeconfig();
        let known = read.as_ref().map(context_names).unwrap_or_default();
        let configured = read.as_ref().ok().and_then(|kubeconfig| proxy::configured(kubeconfig, &options));
        let config = match read {
            Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &options).await,
            // As kubectl does in a pod.
            Err(error) => match Config::incluster() {
                Ok(config) if self.may_be_in_pod(&error) => return Ok(config),
                _ => Err(error),
            },
        };
        let mut config =
            config.map_err(|error| errors::no_kubeconfig(&error, self.context.as_deref(), &known))?;
        config.proxy_url = proxy::chosen(configured, &config.cluster_url)?;
        Ok(config)
    }

    /// Whether the account of a pod may be meant: there is no kubeconfig, and no option chooses something of one.
    fn may_be_in_pod(&self, error: &KubeconfigError) -> bool {
        let chosen = [&self.context, &self.cluster, &self.user];
        self.kubeconfig.is_none()
            && chosen.iter().all(|name| name.is_none())
            && matches!(error, KubeconfigError::ReadConfig(..) | KubeconfigError::FindPath)
    }

    /// Sets the impersonated user of a kubeconfig. Options replace all that it says.
    fn impersonate(&self, user: &mut AuthInfo) -> Result<()> {
        if self.acts_as.is_some() || self.as_uid.is_some() || !self.as_groups.is_empty() {
            user.impersonate.clone_from(&self.acts_as);
            user.impersonate_uid.clone_from(&self.as_uid);
            user.impersonate_groups = Some(self.as_groups.clone());
            user.impersonate_user_extra = None;
        }
        let groups = user.impersonate_groups.as_deref().unwrap_or_default();
        let extra = user.impersonate_user_extra.iter().flat_map(HashMap::values).flatten();
        let others: Vec<&String> = user.impersonate_uid.iter().chain(groups).chain(extra).collect();
        ensure!(
            user.impersonate.is_some() || others.is_empty(),
            "a group or a uid is impersonated only together with a user: add --as"
        );
        for value in user.impersonate.iter().chain(others) {
            let refused = || format!("{value:?} cannot be impersonated: no request header can hold it");
            HeaderValue::from_str(value).with_context(refused)?;
        }
        Ok(())
    }
}

/// The contexts of a kubeconfig.
#[must_use]
pub fn context_names(kubeconfig: &Kubeconfig) -> Vec<String> {
    kubeconfig.contexts.iter().map(|context| context.name.clone()).collect()
}

#[cfg(test)]
mod tests {

    use std::convert::Infallible;

    use http::Request;
    use kube::client::ConfigExt;
    use tower::{Layer, ServiceExt, service_fn};

    use super::*;

    /// The headers about the user of a request with these options and this kubeconfig.
    async fn headers(options: &Options, kubeconfig: &AuthInfo) -> Vec<String> {
        let mut config = Config::new("http://localhost".parse().unwrap());
        config.auth_info = kubeconfig.clone();
        options.impersonate(&mut config.auth_info).unwrap();
        let service = service_fn(|request: Request<()>| async move {
            let headers = request.headers().iter();
            let texts = headers.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
            Ok::<_, Infallible>(texts.collect::<Vec<_>>())
        });
        config.extra_headers_layer().unwrap().layer(service).oneshot(Request::new(())).await.unwrap()
    }

    /// A user must not get the groups of another one.
    #[tokio::test]
    async fn the_options_of_impersonation_replace_what_the_kubeconfig_says() {
        let kubeconfig = AuthInfo {
            impersonate: Some("jane".into()),
            impersonate_groups: Some(vec!["admins".into()]),
            impersonate_user_extra: Some([("example.com/scopes".to_owned(), vec!["view".to_owned()])].into()),
            ..AuthInfo::default()
        };
        let expected = [
            "impersonate-user: jane",
            "impersonate-group: admins",
            "impersonate-extra-example.com%2fscopes: view",
        ];
        assert_eq!(headers(&Options::default(), &kubeconfig).await, expected);
        let bob = Options { acts_as: Some("bob".into()), ..Options::default() };
        assert_eq!(headers(&bob, &kubeconfig).await, ["impersonate-user: bob"]);
        assert!(headers(&Options::default(), &AuthInfo::default()).await.is_empty());
    }

    #[test]
    fn a_group_without_a_user_is_refused() {
        let group = Options { as_groups: vec!["team".into()], ..Options::default() };
        let error = group.impersonate(&mut AuthInfo::default()).unwrap_err().to_string();
        assert!(error.contains("add --as"), "{error}");
        let line = Options { acts_as: Some("a\nb".into()), ..Options::default() };
        let error = line.impersonate(&mut AuthInfo::default()).unwrap_err().to_string();
        assert!(error.contains("no request header can hold it"), "{error}");
    }

    #[test]
    fn a_request_timeout_is_read_as_by_kubectl() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            options: Options,
        }
        let limit = |text: &str| {
            let line = <Line as clap::Parser>::try_parse_from(["catena", "--request-timeout", text]);
            line.ok().map(|line| line.options.limit())
        };
        let seconds = |number| Some(Some(Duration::from_secs(number)));
        assert_eq!((limit("5s"), limit("1m"), limit("7")), (seconds(5), seconds(60), seconds(7)));
        for none in ["0", "0s"] {
            assert_eq!(limit(none), Some(None), "{none}");
        }
        assert_eq!((limit("-5s"), limit("soon")), (None, None));
    }

    #[test]
    fn the_account_of_a_pod_is_used_only_where_nothing_names_another_one() {
        let missing = KubeconfigError::ReadConfig(std::io::ErrorKind::NotFound.into(), PathBuf::new());
        let named = |name: &str| Some(name.to_owned());
        assert!(Options::default().may_be_in_pod(&missing));
        for options in [
            Options { kubeconfig: Some("config".into()), ..Options::default() },
            Options { context: named("prod"), ..Options::default() },
            Options { cluster: named("prod"), ..Options::default() },
            Options { user: named("bob"), ..Options::default() },
        ] {
            assert!(!options.may_be_in_pod(&missing), "{options:?}");
        }
        // One that is there is meant.
        assert!(!Options::default().may_be_in_pod(&KubeconfigError::CurrentContextNotSet));
    }

    #[test]
    fn a_namespace_that_would_be_another_request_is_refused() {
        let namespace = |namespace: Option<&str>| {
            let options = Options { namespace: namespace.map(str::to_owned), ..Options::default() };
            options.namespace_or("shop").map_err(|error| error.to_string())
        };
        assert_eq!((namespace(None), namespace(Some("team"))), (Ok("shop".into()), Ok("team".into())));
        // As for kubectl, an empty one is none.
        assert_eq!(namespace(Some("")), Ok("shop".into()));
        assert_eq!(Options::default().namespace_or("").unwrap(), "default");
        let refused = namespace(Some("?watch=true")).unwrap_err();
        assert!(refused.contains("\"?watch=true\" is not a namespace"), "{refused}");
    }
}
