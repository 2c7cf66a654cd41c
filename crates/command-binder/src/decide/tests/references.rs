//! The target of a command.

use super::*;

#[test]
fn one_of_several_kinds_is_chosen_by_the_reference() {
    let kinds = json!({"target": {
        "kind": "object.spec.target.kind",
        "kinds": [
            {"group": "apps.example", "version": "v1", "resource": "shops", "kind": "Shop"},
            {"version": "v1", "resource": "nodes", "kind": "Node", "scope": "Cluster"},
        ],
    }});
    let kind = kind(&kinds);
    let row = command(&kind, &json!({"spec": {"target": {"kind": "Node"}}})).row;
    assert!(matches!(row.finding, Finding::Target(to) if to.kind.resource.plural == "nodes"));
    let (reason, message) = told(&kind, &json!({"spec": {"target": {"kind": "Pod"}}}), None);
    assert!(reason == "InvalidReference" && message.contains("Shop.apps.example, Node (core)"), "{message}");
}

/// Services of two groups, and a Node.
fn services() -> Arc<CommandKind> {
    kind(&json!({"target": {
        "kind": "object.spec.target.kind",
        "group": "object.spec.target.group",
        "kinds": [
            {"group": "apps.example", "version": "v1", "resource": "services", "kind": "Service"},
            {"group": "", "version": "v1", "resource": "services", "kind": "Service"},
            {"group": "", "version": "v1", "resource": "nodes", "kind": "Node", "scope": "Cluster"},
        ],
    }}))
}

#[test]
fn an_empty_group_is_the_core_group_and_one_that_is_left_open_must_leave_no_choice() {
    let services = services();
    let target = |spec: Value| command(&services, &json!({"spec": {"target": spec}})).row.finding;
    for (spec, group, plural) in [
        (json!({"kind": "Service", "group": ""}), "", "services"),
        (json!({"kind": "Service", "group": "apps.example"}), "apps.example", "services"),
        (json!({"kind": "Node"}), "", "nodes"),
        (json!({"kind": "", "group": "apps.example"}), "apps.example", "services"),
    ] {
        let Finding::Target(to) = target(spec.clone()) else { panic!("{spec}: no target") };
        assert_eq!((&*to.kind.resource.group, &*to.kind.resource.plural), (group, plural), "{spec}");
    }
    for spec in [json!({"kind": "Service"}), json!({})] {
        let Finding::Unfit(Verdict { message: why, .. }) = target(spec.clone()) else {
            panic!("{spec}: a choice was made")
        };
        assert!(
            why.contains("Service.apps.example or Service (core), because target.group"),
            "{spec}: {why}"
        );
    }
    let Finding::Unfit(Verdict { message: why, .. }) =
        target(json!({"kind": "Node", "group": "apps.example"}))
    else {
        panic!()
    };
    assert!(why.contains("of the kind \"Node\" of the group \"apps.example\""), "{why}");
}

/// The policy of `admission` reads the same fields: what it asks the user's right for is what is bound.
#[test]
fn a_quoted_field_is_read_in_every_part_of_a_reference() {
    let quoted = |field: &str| format!("object.spec.`the-target`.`its-{field}`");
    let shops = |group: &str| json!({"group": group, "version": "v1", "resource": "shops", "kind": "Shop"});
    let kind = kind(&json!({
        "filter": "has(object.spec.`the-target`)",
        "target": {
            "name": quoted("name"), "namespace": quoted("namespace"), "uid": quoted("uid"),
            "kind": quoted("kind"), "group": quoted("group"),
            "kinds": [shops("apps.example"), shops("other.example"),
                {"version": "v1", "resource": "nodes", "kind": "Node", "scope": "Cluster"}],
        },
    }));
    let find = |fields: Value| command(&kind, &json!({"spec": {"the-target": fields}})).row.finding;
    let all = json!({
        "its-name": "b", "its-namespace": "there", "its-uid": "u", "its-kind": "Shop", "its-group": "other.example",
    });
    let Finding::Target(to) = find(all) else { panic!("no target") };
    assert_eq!((&*to.name, to.namespace.as_deref(), to.uid.as_deref()), ("b", Some("there"), Some("u")));
    assert_eq!((&*to.kind.resource.kind, &*to.kind.resource.group), ("Shop", "other.example"));
    let Finding::Target(to) = find(json!({"its-name": "b", "its-kind": "Node"})) else { panic!("no target") };
    assert_eq!((to.namespace.as_deref(), to.uid.as_deref(), &*to.kind.resource.kind), (None, None, "Node"));
    assert!(
        matches!(find(json!({"its-kind": "Node"})), Finding::Unfit(verdict) if verdict.message.contains("names no target"))
    );
    assert!(matches!(command(&kind, &json!({})).row.finding, Finding::Settled));
}

#[test]
fn kinds_between_which_no_reference_could_choose_are_refused_with_the_settings() {
    let shop = |group: &str| json!({"group": group, "version": "v1", "resource": "shops", "kind": "Shop"});
    for (kinds, expected) in [
        (json!([shop("a.example"), shop("b.example")]), "kinds[k].target.group: is missing"),
        (
            json!([shop("a.example"), shop("a.example")]),
            "kinds[k].target.kinds: Shop of the group \"a.example\" is listed twice",
        ),
    ] {
        let file = json!({
            "id": "k", "group": "ops.example", "version": "v1", "resource": "restarts", "kind": "Restart",
            "target": {"name": "object.spec.name", "kind": "object.spec.kind", "kinds": kinds},
        });
        let problem = CommandKind::compile(serde_json::from_value(file).unwrap()).unwrap_err();
        assert!(problem.starts_with(expected), "{problem}");
    }
}

#[test]
fn a_group_is_cut_out_of_an_api_version_of_any_group() {
    let cut =
        "object.spec.target.apiVersion.contains('/') ? object.spec.target.apiVersion.split('/')[0] : ''";
    let kind = kind(&json!({"target": {
        "kind": "object.spec.target.kind", "group": cut,
        "kinds": [
            {"group": "apps.example", "version": "v1", "resource": "services", "kind": "Service"},
            {"group": "", "version": "v1", "resource": "services", "kind": "Service"},
        ],
    }}));
    let target = |spec: Value| command(&kind, &json!({"spec": {"target": spec}})).row.finding;
    for (api_version, group) in [("v1", ""), ("apps.example/v1", "apps.example")] {
        let Finding::Target(to) = target(json!({"kind": "Service", "apiVersion": api_version})) else {
            panic!()
        };
        assert_eq!(to.kind.resource.group, group);
    }
    // The expression does more than name a field, so a missing field is not "not set".
    let Finding::Unfit(Verdict { message: why, .. }) = target(json!({"kind": "Service"})) else {
        panic!("a choice was made")
    };
    assert!(why.contains("the field apiVersion is missing"), "{why}");
}

#[test]
fn a_target_outside_of_namespaces_has_none_whatever_the_command_says() {
    let wide = |scope: Value| {
        kind(&json!({"target": {"kinds": [
            {"group": "apps.example", "version": "v1", "resource": "shops", "kind": "Shop", "scope": scope},
        ]}}))
    };
    let object = Some(TargetObject { uid: UID.into(), is_terminating: false, created: None });
    let target = Some(Target::Served { kind: shops(Scope::Cluster), object });
    let action = decide(&observed(&wide(Value::Null), &json!({}), target.clone()));
    assert_eq!(action, bind());
    let (reason, message) = told(&wide(json!("Namespaced")), &json!({}), target);
    assert!(reason == "ScopeMismatch" && message.contains("scope in target.kinds"), "{message}");
}

#[test]
fn a_label_is_believed_only_when_it_was_compared_with_the_target() {
    let kind = kind(&json!({"mode": "Label"}));
    let labelled = |uid: &str| json!({"metadata": {"labels": {"catena.dev/target-uid": uid}}});
    let (reason, message) = told(&kind, &labelled("somebody-elses"), found(UID));
    assert!(reason == "TargetReplaced" && message.contains("remove the label"), "{message}");
    assert_eq!(decide(&observed(&kind, &labelled(UID), found(UID))), Action::Settle);
    // A command that represents data outlives its target, also where another one of that name has come since, and whoever
    // leads: only one that is younger than the present target cannot have been labelled for a former one.
    assert_eq!(decide(&observed(&kind, &labelled(UID), missing())), Action::Settle);
    let present = |created: &str| {
        let created = Some(created.parse().unwrap());
        let object = Some(TargetObject { uid: UID.into(), is_terminating: false, created });
        Some(Target::Served { kind: shops(Scope::Namespaced), object })
    };
    let former = labelled("former");
    assert_eq!(decide(&observed(&kind, &former, present("2026-01-01T00:00:01Z"))), Action::Settle);
    assert_eq!(told(&kind, &former, present("2026-01-01T00:00:00Z")).0, "TargetReplaced");
    let row = command(&kind, &labelled("somebody-elses")).row;
    let Finding::Target(to) = &row.finding else { panic!("{:?}", row.finding) };
    assert_eq!(row.proven_target(to, false), None, "so that it is looked up");
}

#[test]
fn a_command_stays_bound_while_its_reference_is_refreshed() {
    let mut reference = owner("Shop", "a", UID);
    reference["apiVersion"] = json!("apps.example/v0");
    let bound = json!({"metadata": {
        "ownerReferences": [reference], "annotations": {"catena.dev/bound-to": UID},
    }});
    let kind = kind(&json!({"reportsBound": true}));
    let mut outdated = observed(&kind, &bound, None);
    // The version may cease to be served.
    assert_eq!(decide(&outdated), Action::Wait(Duration::from_secs(60)));
    let Action::Bind(refreshed) = bind() else { panic!() };
    outdated.refreshed = Some(refreshed.clone());
    assert_eq!(decide(&outdated), Action::Refresh(refreshed));
    let failure = Failure { is_expected: true, ..Failure::transient("Conflict", "") };
    outdated.backoffs = Backoffs::of_everything(failure);
    outdated.can_report = Some(true);
    assert_eq!(decide(&outdated), Action::Settle, "it is bound all the same");
}
