use super::*;

/// Two minimal charts, and a `_shared` beside them.
struct Charts(tempfile::TempDir);

impl Charts {
    fn new() -> Self {
        let charts = Self(tempfile::tempdir().unwrap());
        charts.put("_shared/files/templates/lease.yaml", "kind: Lease\n");
        charts.put("_shared/files/.helmignore", "/schema.json\n");
        charts.put("_shared/endings/values.yaml", "# -- Image.\nimage: catena/CHART_NAME\n");
        charts.put("_shared/endings/README.md", "`helm test CHART_NAME`\n");
        charts.put("_shared/schema.json", r#"{"properties": {"image": {"type": "string"}}}"#);
        for name in ["one", "two"] {
            charts.put(&format!("{name}/Chart.yaml"), "apiVersion: v2\n");
            charts.put(&format!("{name}/schema.json"), r#"{"properties": {"kinds": {"type": "array"}}}"#);
            charts.put(&format!("{name}/values.yaml"), "kinds: []\n");
        }
        charts.generated().write().unwrap();
        charts
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.0.path().join(path)).unwrap()
    }

    fn generated(&self) -> Generated {
        generated(self.0.path()).unwrap()
    }

    /// The error of a check.
    fn complaint(&self) -> String {
        self.generated().check().unwrap_err().to_string()
    }

    /// The error of a generation.
    fn refusal(&self) -> String {
        format!("{:#}", generated(self.0.path()).err().unwrap())
    }
}

#[test]
fn every_chart_gets_the_shared_files_and_each_says_that_it_is_generated() {
    let charts = Charts::new();
    let [one, two] = ["one", "two"].map(|name| charts.text(&format!("{name}/templates/lease.yaml")));
    assert_eq!(one, format!("{{{{- /* {NOTE} */ -}}}}\nkind: Lease\n"));
    assert_eq!(one, two);
    assert_eq!(charts.text("one/.helmignore"), format!("# {NOTE}\n/schema.json\n"));
    assert!(charts.text("one/values.schema.json").lines().nth(1).unwrap().contains("Generated from"));
    charts.generated().check().unwrap();
}

#[test]
fn what_needs_definitions_is_only_in_the_charts_that_have_some() {
    let charts = Charts::new();
    charts.put("_shared/definitions/templates/check.yaml", "kind: Job\n");
    charts.put("one/files/crd.yaml", "kind: CustomResourceDefinition\n");
    charts.generated().write().unwrap();
    let has_check = |name: &str| charts.0.path().join(name).join("templates/check.yaml").exists();
    assert_eq!((has_check("one"), has_check("two")), (true, false));
}

#[test]
fn a_check_names_the_file_that_somebody_edited_in_one_chart_alone() {
    for (file, from, to) in [
        ("templates/lease.yaml", "Lease", "Other"),
        ("values.schema.json", "string", "array"),
        ("values.yaml", "catena/two", "mine/two"),
    ] {
        let charts = Charts::new();
        let path = format!("two/{file}");
        charts.put(&path, &charts.text(&path).replace(from, to));
        let complaint = charts.complaint();
        assert!(complaint.contains(&format!("two/{file} not as generated")), "{complaint}");
        assert!(complaint.contains("run `cargo xtask charts`"), "{complaint}");
        assert!(!complaint.contains("one/"), "{complaint}");
    }
}

#[test]
fn a_file_that_is_shared_no_longer_goes_from_every_chart_and_one_by_hand_stays() {
    let charts = Charts::new();
    charts.put("one/templates/job.yaml", "kind: Job\n");
    fs::remove_file(charts.0.path().join("_shared/files/templates/lease.yaml")).unwrap();
    assert!(charts.complaint().contains("two/templates/lease.yaml"));
    charts.generated().write().unwrap();
    assert!(!charts.0.path().join("one/templates/lease.yaml").exists());
    assert_eq!(charts.text("one/templates/job.yaml"), "kind: Job\n");
}

#[test]
fn a_file_keeps_its_own_beginning_and_gets_the_ending_with_the_charts_name() {
    let charts = Charts::new();
    assert_eq!(
        charts.text("one/values.yaml"),
        format!("kinds: []\n\n# {ENDING_NOTE}\n\n# -- Image.\nimage: catena/one\n")
    );
    assert_eq!(charts.text("two/README.md"), format!("<!-- {ENDING_NOTE} -->\n\n`helm test two`\n"));
    charts.put("one/values.yaml", &charts.text("one/values.yaml").replace("kinds: []", "kinds: [a]"));
    charts.generated().check().unwrap();
}

#[test]
fn a_chart_includes_a_part_of_the_schema_that_only_some_have() {
    let charts = Charts::new();
    charts.put("_shared/schemas/kinds.json", r#"{"properties": {"kinds": {"type": "array"}}}"#);
    charts.put("one/schema.json", r#"{"include": ["kinds"], "properties": {"other": {"type": "string"}}}"#);
    charts.generated().write().unwrap();
    let schema: Value = serde_json::from_str(&charts.text("one/values.schema.json")).unwrap();
    let properties = schema["properties"].as_object().unwrap();
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["image", "kinds", "other"]);
    assert!(schema["include"].is_null());
    charts.put("two/schema.json", r#"{"include": ["none"]}"#);
    assert!(charts.refusal().contains("none.json"), "{}", charts.refusal());
}

#[test]
fn a_value_in_the_beginning_and_in_the_ending_is_refused() {
    let charts = Charts::new();
    charts.put("one/values.yaml", "image: mine\n");
    assert!(charts.refusal().contains("one/values.yaml"), "{}", charts.refusal());
}

#[test]
fn a_named_template_that_another_chart_could_have_is_refused_in_a_chart() {
    let charts = Charts::new();
    charts.put("one/templates/_names.tpl", "{{- define \"catena.name\" -}}{{- end }}");
    let refusal = charts.refusal();
    assert!(refusal.contains("one/templates/_names.tpl") && refusal.contains("\"one.\""), "{refusal}");
}

#[test]
fn every_named_template_begins_with_the_name_of_who_defines_it() {
    let text = "{{- define \"one.labels\" -}}x{{- end }}\n{{ define \"catena.labels\" }}y{{ end }}";
    names_begin_with("one", "{{ include \"catena.labels\" . }}").unwrap();
    names_begin_with("one", "{{- define \"one.labels\" -}}").unwrap();
    assert!(names_begin_with("one", text).unwrap_err().to_string().contains("catena.labels"));
    assert!(names_begin_with("catena", text).unwrap_err().to_string().contains("one.labels"));
    names_begin_with("on", "{{- define \"one.labels\" -}}").unwrap_err();
}
