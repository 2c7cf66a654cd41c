//! The content of Events, and their repetition.

use super::*;

#[test]
fn a_missing_target_is_told_and_waited_for() {
    let kind = kind(&json!({}));
    let (reason, message) = told(&kind, &json!({}), missing());
    assert!(reason == "TargetNotFound" && message.contains("as soon as"), "{message}");
    let for_another = json!({"spec": {"target": {"uid": "former"}}});
    let (_, message) = told(&kind, &for_another, missing());
    assert!(message.contains("uid former") && !message.contains("as soon as"), "{message}");
    assert_eq!(told(&kind, &json!({}), Some(Target::NotServed)).0, "KindNotServed");
    let object = Some(TargetObject { uid: UID.into(), is_terminating: true });
    let terminating = Some(Target::Served { kind: shops(true), object });
    assert_eq!(told(&kind, &json!({}), terminating).0, "TargetTerminating");
    let mut again = observed(&kind, &json!({}), missing());
    let Action::Tell(verdict) = decide(&again) else { panic!("it is not told") };
    again.told = Some(Told::new(&verdict, again.now, None));
    assert_eq!(decide(&again), Action::Wait(Duration::from_secs(60)));
}

/// A command for this shop, which is missing, and its report.
fn for_missing(kind: &Arc<CommandKind>, name: &str) -> (Observed, Verdict) {
    let observed = observed(kind, &json!({"spec": {"target": {"name": name}}}), missing());
    let Action::Tell(verdict) = decide(&observed) else { panic!("it is not told") };
    (observed, verdict)
}

#[test]
fn a_report_that_a_change_of_the_command_made_untrue_is_followed_by_another() {
    let kind = kind(&json!({}));
    let (_, about_a) = for_missing(&kind, "a");
    let (mut changed, about_b) = for_missing(&kind, "b");
    let minute_ago = changed.now.checked_sub(Duration::from_secs(60)).unwrap();
    changed.told = Some(Told::new(&about_a, minute_ago, None));
    assert_eq!(decide(&changed), Action::Tell(about_b));
    changed.told = Some(Told::new(&about_a, changed.now, None));
    assert_eq!(decide(&changed), Action::Wait(Duration::from_secs(10)), "not at any pace");
}

#[test]
fn a_message_that_changes_all_the_time_is_told_less_and_less_often() {
    let kind = kind(&json!({}));
    let mut told: Vec<Told> = Vec::new();
    for second in (0..7200).step_by(5) {
        let (mut changed, verdict) = for_missing(&kind, &format!("shop-{second}"));
        changed.now = changed.now.checked_add(Duration::from_secs(second)).unwrap();
        changed.told = told.last().copied();
        if matches!(decide(&changed), Action::Tell(_)) {
            told.push(Told::new(&verdict, changed.now, changed.told));
        }
    }
    let since_first = |told: &Told| told.at.duration_since("2026-01-01T00:01:00Z".parse().unwrap()).as_secs();
    let times: Vec<_> = told.iter().map(since_first).collect();
    assert_eq!(times[..6], [0, 10, 20, 40, 80, 160]);
    assert!(times.len() <= 12 && times.windows(2).all(|pair| pair[1] - pair[0] < 50 * 60), "{times:?}");
}

#[test]
fn a_message_that_stood_still_for_long_is_corrected_soon_also_a_second_time() {
    let kind = kind(&json!({}));
    let (first, verdict) = for_missing(&kind, "shop-a");
    let told = Told::new(&verdict, first.now, None);
    let later = |minutes: u64| first.now.checked_add(Duration::from_secs(60 * minutes)).unwrap();
    let (_, verdict) = for_missing(&kind, "shop-b");
    let told = Told::new(&verdict, later(25), Some(told));
    let (mut again, _) = for_missing(&kind, "shop-c");
    again.told = Some(told);
    again.now = later(26);
    assert!(matches!(decide(&again), Action::Tell(_)));
}

fn minutes(action: &Action) -> u64 {
    let Action::Wait(time) = action else { panic!("instead of waiting: {action:?}") };
    time.as_secs() / 60
}

#[test]
fn what_is_told_is_told_again_before_its_event_expires_and_not_sooner() {
    let kind = kind(&json!({}));
    let elsewhere = json!({"spec": {"target": {"namespace": "there"}}});
    let mut told = observed(&kind, &elsewhere, missing());
    let Action::Tell(verdict) = decide(&told) else { panic!("it is not told") };
    told.told = Some(Told::new(&verdict, told.now, None));
    let rests = minutes(&decide(&told));
    assert!((30..50).contains(&rests), "{rests} min");
    told.now = told.now.checked_add(Duration::from_secs(60 * (rests + 1))).unwrap();
    assert!(matches!(decide(&told), Action::Tell(_)));
    // Another reason is reported at once.
    let other = Verdict { reason: "TargetNotFound", ..verdict };
    told.told = Some(Told::new(&other, told.now, None));
    assert!(matches!(decide(&told), Action::Tell(_)));
}

#[test]
fn a_new_process_tells_of_old_commands_one_after_another_and_of_new_ones_at_once() {
    let kind = kind(&json!({}));
    let mut rests: Vec<_> = (0..100)
        .map(|number| {
            let old = json!({
                "metadata": {"uid": format!("uid-{number}"), "creationTimestamp": "2025-12-01T00:00:00Z"},
                "spec": {"target": {"namespace": "there"}},
            });
            let mut old = observed(&kind, &old, missing());
            old.leads_since = old.now;
            match decide(&old) {
                Action::Wait(time) => time.as_secs(),
                Action::Tell(_) => 0,
                other => panic!("{other:?}"),
            }
        })
        .collect();
    rests.sort_unstable();
    assert!(rests[99] < 600 && rests[50] > 120 && rests[50] < 480, "{rests:?}");
    let mut new = observed(&kind, &json!({"spec": {"target": {"namespace": "there"}}}), missing());
    new.leads_since = new.now;
    assert!(matches!(decide(&new), Action::Tell(_)));
}

#[test]
fn what_stands_for_data_outlives_the_kind_of_its_target_without_a_word() {
    let label = kind(&json!({"mode": "Label"}));
    let labelled = json!({"metadata": {"labels": {"catena.dev/target-uid": UID}}});
    assert_eq!(decide(&observed(&label, &labelled, Some(Target::NotServed))), Action::Settle);
    assert_eq!(told(&label, &json!({}), Some(Target::NotServed)).0, "KindNotServed");
}
