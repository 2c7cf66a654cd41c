//! kubectl catena issues commands, reports their outcome, and answers a mistake with advice.

use anyhow::{Context, Result};
use catena_api::{BasicDeployment, BasicDeploymentRestart};
use e2e::{Cluster, WAIT_TIMEOUT, catena, catena_as, deployment, eventually, succeeds, until_root_cause};
use kube::api::DeleteParams;
use serde_json::{Value, json};

#[tokio::test]
async fn a_command_that_is_waited_for_tells_its_end_by_the_exit_code() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("waits").await?;
    namespace.create(&deployment("web", 2)).await?;
    namespace.until_ready("web").await;
    let before = e2e::uids(&namespace.until_ready_pods(2).await);

    let said = succeeds(&namespace.name, &["restart", "web", "--wait", "--timeout", "60s"]).await?;
    assert!(said.out.starts_with("BasicDeploymentRestart/web-restart-"), "{said:?}");
    assert!(said.err.contains("succeeded"), "{said:?}");
    let after = e2e::uids(&namespace.until_ready_pods(2).await);
    assert!(before.is_disjoint(&after), "pods stayed");

    let failed = catena(&namespace.name, &["rollback", "web", "--to-revision", "99", "--wait"]).await?;
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.err.contains("RevisionNotFound"), "{failed:?}");

    let image = json!({"spec": {"parameters": {"image": "registry.invalid/missing:1"}}});
    namespace.merge::<BasicDeployment>("web", image).await?;
    until_root_cause(&namespace.name, "web", "ImagePullBackOff").await;
    let late = catena(&namespace.name, &["restart", "web", "--wait", "--timeout", "40s"]).await?;
    assert_eq!(late.code, 2, "{late:?}");
    // While it waits, only news, and once at the end.
    let told: Vec<_> = late.err.lines().filter(|line| line.contains("cannot pull its image")).collect();
    let (last, before) = told.split_last().context(late.err.clone())?;
    let ends = |line: &str| line.contains("has not finished within");
    assert!(ends(last) && !before.is_empty() && !before.iter().any(|line| ends(line)), "{late:?}");
    assert!(before.windows(2).all(|lines| lines[0] != lines[1]), "{late:?}");
    Ok(())
}

#[tokio::test]
async fn a_dry_run_shows_the_command_and_issues_none() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("dry").await?;
    namespace.create(&deployment("web", 1)).await?;
    for place in ["client", "server"] {
        let said =
            succeeds(&namespace.name, &["rollback", "web", "--to-revision", "3", "--dry-run", place]).await?;
        for part in ["kind: BasicDeploymentRollback", "toRevision: 3", "name: web"] {
            assert!(said.out.contains(part), "{part} is not in: {}", said.out);
        }
    }
    let said =
        succeeds(&namespace.name, &["run", "bdrestart", "web", "--dry-run", "server", "-o", "json"]).await?;
    assert_eq!(said.json()?["spec"]["targetRef"]["name"], "web");
    let refused =
        catena(&namespace.name, &["run", "bdrestart", "web", "--set", "nonsense=1", "--dry-run", "server"])
            .await?;
    assert!(refused.code == 1 && refused.err.contains("spec.nonsense"), "{refused:?}");
    let kept = namespace.api::<BasicDeploymentRestart>().list(&kube::api::ListParams::default()).await?;
    assert!(kept.items.is_empty(), "{kept:?}");
    Ok(())
}

#[tokio::test]
async fn each_mistake_of_a_user_is_answered_with_what_to_do() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("mistakes").await?;
    namespace.create(&deployment("web", 1)).await?;
    let said = catena("no-such-namespace", &["why", "web", "-o", "json"]).await?;
    let error = said.json()?["error"].to_string();
    assert!(said.code == 1 && error.contains("there is no namespace"), "{said:?}");
    for (arguments, answer) in [
        (&["why", "wbe"][..], "did you mean \"web\"?"),
        (&["why", "bd/wbe"], "did you mean \"web\"?"),
        (&["why", "pods/?watch=true"], "\"?watch=true\" is not an object name"),
        (&["tree", "basicdeplyment/web"], "did you mean basicdeployments"),
        (&["held", "--context", "nowhere"], "the kubeconfig has no context \"nowhere\"; it has: "),
        (&["held", "--kubeconfig", "/nowhere"], "set KUBECONFIG or --kubeconfig"),
        (&["restart", "pod/web"], "is not a BasicDeployment"),
        (&["rollback", "nobody"], "there is no BasicDeployment \"nobody\""),
    ] {
        let said = catena(&namespace.name, arguments).await?;
        assert!(said.code == 1 && said.err.contains(answer), "{arguments:?}: {answer} is not in: {said:?}");
    }
    Ok(())
}

#[tokio::test]
async fn who_may_not_look_is_told_which_right_is_missing() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("rights").await?;
    namespace.create(&deployment("web", 1)).await?;
    let directory = std::env::temp_dir().join(&namespace.name);
    std::fs::create_dir_all(&directory)?;
    let path = directory.join("kubeconfig");
    let whole = e2e::kubectl(&["config", "view", "--raw", "--minify", "--flatten", "-o", "json"]).await?;
    let mut kubeconfig: Value = serde_json::from_str(&whole)?;
    e2e::kubectl(&["--namespace", &namespace.name, "create", "serviceaccount", "nobody"]).await?;
    let token = e2e::kubectl(&["--namespace", &namespace.name, "create", "token", "nobody"]).await?;
    kubeconfig["users"][0]["user"] = json!({"token": token.trim()});
    std::fs::write(&path, kubeconfig.to_string())?;

    let in_namespace = ["--namespace", namespace.name.as_str()];
    let said = catena_as(&path, &[&in_namespace[..], &["history", "web"]].concat()).await?;
    assert!(said.code == 1 && said.err.contains("you may not get BasicDeployment \"web\""), "{said:?}");
    let binding = ["create", "rolebinding", "viewer", "--clusterrole=view"];
    let account = format!("--serviceaccount={}:nobody", namespace.name);
    e2e::kubectl(&[&in_namespace[..], &binding, &[&account]].concat()).await?;
    // Unreadable parts are reported, and the rest is shown.
    eventually("a viewer sees the tree", WAIT_TIMEOUT, async || {
        let said = catena_as(&path, &[&in_namespace[..], &["why", "web"]].concat())
            .await
            .map_err(|error| error.to_string())?;
        let is_told =
            [0, 5].contains(&said.code) && said.out.contains("the controllers of Catena (no permission)");
        if is_told { Ok(()) } else { Err(format!("{said:?}")) }
    })
    .await;
    std::fs::remove_dir_all(directory)?;
    namespace.api::<BasicDeployment>().delete("web", &DeleteParams::default()).await?;
    Ok(())
}
