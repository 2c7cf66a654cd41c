//! The whole suite is one program, so that the tests of all files run in parallel, unless one needs a controller for itself.

mod admits_commands;
mod adopts_its_own;
mod agrees_with_the_model;
mod answers_helm_test;
mod asks_before_deleting;
mod backs_up;
mod backs_up_as_the_examples_show;
mod backs_up_many;
mod backs_up_through_crashes;
mod binds_by_rules;
mod binds_commands;
mod binds_foreign_commands;
mod brings_up;
mod checks_the_contract_live;
mod checks_upgrades;
mod costs;
mod costs_of_children;
mod deletes;
mod doubts_undeclared_kinds;
mod drains;
mod exchanges_children;
mod explains;
mod explains_broken_clusters;
mod explains_broken_controllers;
mod finds_former_children;
mod fits_the_rollouts;
mod fits_the_schemas;
mod follows_the_readme;
mod goes_on;
mod hands_over;
mod heals;
mod heals_after_a_blackhole;
mod holds_what_is_not_backed_up;
mod issues_commands;
mod keeps_history;
mod keeps_the_budget_of_an_exchange;
mod keeps_the_transcript;
mod keeps_up;
mod leaves_a_broken_child;
mod meets_pod_security;
mod migrates;
mod owns_its_status;
mod passes_over_bad_objects;
mod proves_its_backups;
mod reaps_commands;
mod reaps_foreign_kinds;
mod refuses_bad_input;
mod refuses_commands;
mod refuses_unknown_fields;
mod refuses_upgrades;
mod reports_blockers;
mod restores;
mod retries_what_was_fixed;
mod rolls_out;
mod runs_any_child;
mod runs_commands;
mod runs_on_real_nodes;
mod scales;
mod serves_each_restart_once;
mod shows_the_chain;
mod soaks;
mod speaks_kstatus;
mod specifies_contracts;
mod stands_by;
mod survives_chaos;
mod survives_clock_jumps;
mod survives_crashes;
mod survives_outages;
mod survives_the_cluster;
mod takes_any_settings;
mod takes_any_spec;
mod takes_over;
mod tells_milestones;
mod uninstalls_in_any_order;
mod upgrades_charts;
mod waits_for_served_kinds;

#[test]
fn every_file_is_part_of_the_suite() -> anyhow::Result<()> {
    let text = include_str!("suite.rs");
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().display().to_string();
        let is_part = name == "suite" || text.contains(&format!("\nmod {name};\n"));
        anyhow::ensure!(is_part, "tests/suite.rs has no `mod {name};`");
    }
    Ok(())
}
