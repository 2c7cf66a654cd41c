//! The whole suite is one program, so that the tests of all files run in parallel, unless one needs a controller for itself.
//! Those that want the cluster alone are in modules `alone`.

automod::dir!("tests");
