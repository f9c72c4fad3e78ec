//! Chromium, as a person uses it: elements are found by what they are and what they are called, and used by mouse and
//! keyboard. It needs Debian's `chromium` and `chromium-driver`.

mod axe;
mod command;
mod log;
mod target;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use fantoccini::actions::{InputSource as _, KeyAction, KeyActions};
use fantoccini::elements::{Element, ElementRef};
use fantoccini::error::CmdError;
use fantoccini::wd::Capabilities;
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};

pub use self::axe::AxeViolation;
pub use self::log::{ConsoleEntry, NetworkLog};
pub use self::target::{
    Target, button, combobox, containing, css, dialog, heading, link, searchbox, tab, textbox,
};
use crate::binary::Binary;
use crate::http;
use crate::port::free_port;
use crate::wait::eventually;

/// The key under which WebDriver names an element (W3C WebDriver 12.1).
const ELEMENT_KEY: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Keys by their WebDriver code points, for [`Browser::press`].
pub mod key {
    /// Tab.
    pub const TAB: char = '\u{e004}';
    /// Enter.
    pub const ENTER: char = '\u{e007}';
    /// Escape.
    pub const ESCAPE: char = '\u{e00c}';
    /// End.
    pub const END: char = '\u{e010}';
    /// Home.
    pub const HOME: char = '\u{e011}';
    /// The up arrow.
    pub const UP: char = '\u{e013}';
    /// The right arrow.
    pub const RIGHT: char = '\u{e014}';
    /// The down arrow.
    pub const DOWN: char = '\u{e015}';
}

/// What the page is told that the system prefers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// Dark text on a light ground.
    Light,
    /// Light text on a dark ground.
    Dark,
}

impl Theme {
    /// Its name in `prefers-color-scheme`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// A Chromium with a fresh profile and one page. It ends when it is dropped.
#[derive(Debug)]
pub struct Browser {
    // Dropped in this order: the session, the processes, their files.
    client: Client,
    _driver: Binary,
    directory: tempfile::TempDir,
    network: Mutex<NetworkLog>,
    console: Mutex<Vec<ConsoleEntry>>,
}

impl Browser {
    /// A browser that resolves no names but `localhost`.
    ///
    /// # Panics
    /// It does not start: install Debian's `chromium` and `chromium-driver`.
    pub async fn start() -> Self {
        Self::start_with(&["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"])
            .await
    }

    /// A browser for which every host that is not an address or `localhost` is at `canary`, on whatever port, and which
    /// trusts any certificate.
    ///
    /// # Panics
    /// As [`Self::start`].
    pub async fn start_with_canary(canary: SocketAddr) -> Self {
        // The first rule that matches holds. The browser itself looks for its maker now and then.
        let makers = ["google.com", "googleapis.com", "gstatic.com", "gvt1.com"];
        let own = makers.map(|maker| format!("MAP {maker} ~NOTFOUND, MAP *.{maker} ~NOTFOUND")).join(", ");
        let rules =
            format!("--host-resolver-rules={own}, MAP * {canary}, EXCLUDE 127.0.0.1, EXCLUDE localhost");
        Self::start_with(&[rules.as_str(), "--ignore-certificate-errors"]).await
    }

    async fn start_with(flags: &[&str]) -> Self {
        let directory = tempfile::Builder::new().prefix("tempmail-browser-").tempdir();
        let directory = directory.expect("a directory can be made");
        let address = free_port();
        let mut command = Command::new("chromedriver");
        command.arg(format!("--port={}", address.port())).env("HOME", directory.path());
        let driver = Binary::spawn(command);
        let url = format!("http://{address}");
        let probe = http::client();
        eventually("chromedriver answers", || async {
            probe.get(format!("{url}/status")).send().await.ok().map(|_response| ())
        })
        .await;
        let connected = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities(directory.path(), flags))
            .connect(&url)
            .await;
        let client = connected.unwrap_or_else(|error| panic!("no Chromium: {error}\n{}", driver.output()));
        let (network, console) = (Mutex::default(), Mutex::default());
        Self { client, _driver: driver, directory, network, console }
    }

    /// Opens a page, and returns when it has loaded.
    ///
    /// # Panics
    /// It does not load.
    pub async fn open(&self, url: &str) {
        self.client.goto(url).await.expect("the page loads");
    }

    /// Loads the page again.
    ///
    /// # Panics
    /// It does not load.
    pub async fn reload(&self) {
        self.client.refresh().await.expect("the page loads");
    }

    /// The address of the page, with its fragment.
    ///
    /// # Panics
    /// The browser is gone.
    pub async fn url(&self) -> String {
        self.client.current_url().await.expect("a page has an address").to_string()
    }

    /// The element, once it is there and visible.
    ///
    /// # Panics
    /// It never is.
    pub async fn wait_for(&self, target: Target<'_>) -> Element {
        eventually(&format!("{target} is shown"), || self.find(target)).await
    }

    /// The element, if it is there and visible.
    pub async fn find(&self, target: Target<'_>) -> Option<Element> {
        // A document that is being loaded has nothing.
        let found = self.client.execute(target::FIND, target.arguments()).await.ok()?;
        let id = found[ELEMENT_KEY].as_str()?.to_owned();
        Some(Element::from_element_id(self.client.clone(), ElementRef::from(id)))
    }

    /// Returns once the element is not there any more.
    ///
    /// # Panics
    /// It stays.
    pub async fn wait_until_gone(&self, target: Target<'_>) {
        eventually(&format!("{target} is gone"), || async {
            self.find(target).await.is_none().then_some(())
        })
        .await;
    }

    /// Clicks an element once it is there and nothing covers it.
    ///
    /// # Panics
    /// It never is.
    pub async fn click(&self, target: Target<'_>) {
        eventually(&format!("{target} is clicked"), || async {
            match self.find(target).await?.click().await {
                Ok(()) => Some(()),
                // It moves, was replaced, or is covered for a moment.
                Err(CmdError::Standard(_)) => None,
                Err(error) => panic!("{target}: {error}"),
            }
        })
        .await;
    }

    /// Replaces the text of a field.
    ///
    /// # Panics
    /// There is no such field.
    pub async fn fill(&self, target: Target<'_>, text: &str) {
        let field = self.wait_for(target).await;
        field.clear().await.expect("a field can be emptied");
        field.send_keys(text).await.expect("a field takes text");
    }

    /// Chooses the option of this text.
    ///
    /// # Panics
    /// There is none.
    pub async fn choose(&self, target: Target<'_>, option: &str) {
        self.wait_for(target).await.select_by_label(option).await.expect("the option is there");
    }

    /// Presses keys one after the other, whatever has the focus.
    ///
    /// # Panics
    /// The browser is gone.
    pub async fn press(&self, keys: &[char]) {
        let pressed = keys.iter().fold(KeyActions::new("keyboard".to_owned()), |pressed, &value| {
            pressed.then(KeyAction::Down { value }).then(KeyAction::Up { value })
        });
        self.client.perform_actions(pressed).await.expect("keys can be pressed");
    }

    /// Types a text into what has the focus.
    ///
    /// # Panics
    /// The browser is gone.
    pub async fn type_text(&self, text: &str) {
        self.press(&text.chars().collect::<Vec<_>>()).await;
    }

    /// Returns once the page shows this text.
    ///
    /// # Panics
    /// It never does.
    pub async fn wait_for_text(&self, text: &str) {
        eventually(&format!("the page shows {text:?}"), || async {
            self.text().await.contains(text).then_some(())
        })
        .await;
    }

    /// Returns once the page does not show this text.
    ///
    /// # Panics
    /// It keeps showing it.
    pub async fn wait_until_text_is_gone(&self, text: &str) {
        eventually(&format!("the page does not show {text:?}"), || async {
            (!self.text().await.contains(text)).then_some(())
        })
        .await;
    }

    /// Returns once the document in a frame shows this text.
    ///
    /// # Panics
    /// It never does.
    pub async fn wait_for_text_in_frame(&self, frame: Target<'_>, text: &str) {
        eventually(&format!("{frame} shows {text:?}"), || async {
            self.find(frame).await?.enter_frame().await.ok()?;
            let shown = self.text().await;
            self.client.enter_parent_frame().await.expect("the page is there");
            shown.contains(text).then_some(())
        })
        .await;
    }

    /// What the page shows, as text; empty while it is being loaded.
    pub async fn text(&self) -> String {
        let text = self.client.execute("return document.body?.innerText ?? ''", Vec::new()).await;
        text.ok().and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// The result of a script in the page, which `return`s it.
    ///
    /// # Panics
    /// The script throws.
    pub async fn evaluate(&self, script: &str, arguments: Vec<Value>) -> Value {
        self.client.execute(script, arguments).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// The value of an expression in the page, or what its promise resolves to.
    ///
    /// # Panics
    /// It throws.
    pub async fn evaluate_async(&self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.cdp("Runtime.evaluate", parameters).await;
        assert!(answer["exceptionDetails"].is_null(), "{}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// The result of a command of the Chrome DevTools Protocol.
    ///
    /// # Panics
    /// It fails.
    pub async fn cdp(&self, method: &str, parameters: Value) -> Value {
        let command = command::Cdp { method: method.to_owned(), parameters };
        self.client.issue_cmd(command).await.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Sets the size of the page in CSS pixels, and the theme that the system prefers.
    ///
    /// # Panics
    /// The browser is gone.
    pub async fn show_as(&self, width: u32, height: u32, theme: Theme) {
        let is_phone = width < 600;
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone});
        self.cdp("Emulation.setDeviceMetricsOverride", metrics).await;
        let features = json!([
            {"name": "prefers-color-scheme", "value": theme.name()},
            // What moves is seen differently each time.
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]);
        self.cdp("Emulation.setEmulatedMedia", json!({ "features": features })).await;
    }

    /// A PNG of what is seen.
    ///
    /// # Panics
    /// The browser is gone.
    pub async fn screenshot(&self) -> Vec<u8> {
        self.client.screenshot().await.expect("the page can be seen")
    }

    /// What the console has so far: of scripts, and of the browser about the page.
    ///
    /// # Panics
    /// The browser is gone.
    pub async fn console(&self) -> Vec<ConsoleEntry> {
        let read = self.client.issue_cmd(command::Log("browser")).await.expect("the console can be read");
        let mut console = self.console.lock().unwrap_or_else(PoisonError::into_inner);
        console.extend(log::console_entries(&read));
        console.clone()
    }

    /// What the page and its frames have requested so far.
    ///
    /// # Panics
    /// The browser is gone.
    pub async fn network(&self) -> NetworkLog {
        let read = self.client.issue_cmd(command::Log("performance")).await.expect("the log can be read");
        let mut network = self.network.lock().unwrap_or_else(PoisonError::into_inner);
        network.extend(&read);
        network.clone()
    }

    /// The file, not an empty one, that was downloaded under this name, once it is complete.
    ///
    /// # Panics
    /// It never is.
    pub async fn downloaded(&self, name: &str) -> Vec<u8> {
        let path = downloads(self.directory.path()).join(name);
        // An empty file has the name until the complete one replaces it.
        let read = || async { std::fs::read(&path).ok().filter(|content| !content.is_empty()) };
        eventually(&format!("{name} is downloaded"), read).await
    }

    /// What axe-core finds wrong with the page as it is.
    ///
    /// # Panics
    /// There is no axe-core: `./tests/run browser` installs it.
    pub async fn accessibility_violations(&self) -> Vec<AxeViolation> {
        axe::violations(self).await
    }

    /// Uses another page of the two that are open.
    ///
    /// # Panics
    /// There is none.
    pub async fn switch_to_other_tab(&self) {
        let current = self.client.window().await.expect("a page is used");
        let all = self.client.windows().await.expect("pages can be listed");
        let other = all.into_iter().find(|window| *window != current).expect("there is another page");
        self.client.switch_to_window(other).await.expect("the page is there");
    }

    /// Goes back to what was shown before.
    ///
    /// # Panics
    /// The browser is gone.
    pub async fn back(&self) {
        self.client.back().await.expect("the browser goes back");
    }

    /// How many pages are open.
    ///
    /// # Panics
    /// The browser is gone.
    pub async fn page_count(&self) -> usize {
        self.client.windows().await.expect("pages can be counted").len()
    }

    /// A new page of the same profile, which becomes the one that is used.
    ///
    /// # Panics
    /// The browser is gone.
    pub async fn open_tab(&self, url: &str) {
        let tab = self.client.new_window(true).await.expect("there is room for a tab");
        self.client.switch_to_window(tab.handle).await.expect("the tab is there");
        self.open(url).await;
    }
}

/// Where files are saved.
fn downloads(directory: &Path) -> PathBuf {
    directory.join("downloads")
}

fn capabilities(directory: &Path, flags: &[&str]) -> Capabilities {
    let mut arguments: Vec<String> = [
        "--headless=new",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        // Nothing of the browser itself is to reach a network.
        "--no-first-run",
        "--no-default-browser-check",
        "--no-proxy-server",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-default-apps",
        "--disable-domain-reliability",
        "--disable-sync",
        "--disable-breakpad",
        "--password-store=basic",
        "--lang=en-US",
        "--window-size=1440,900",
    ]
    .map(str::to_owned)
    .to_vec();
    if nix::unistd::geteuid().is_root() {
        arguments.push("--no-sandbox".to_owned());
    }
    arguments.push(format!("--user-data-dir={}", directory.join("profile").display()));
    arguments.extend(flags.iter().map(|&flag| flag.to_owned()));
    let preferences = json!({
        "download.default_directory": downloads(directory),
        "download.prompt_for_download": false,
        "intl.accept_languages": "en-US,en",
        "credentials_enable_service": false,
        "safebrowsing.enabled": false,
        // In place of the page for new tabs, which loads much.
        "session.restore_on_startup": 4,
        "session.startup_urls": ["about:blank"],
    });
    let capabilities = json!({
        "browserName": "chrome",
        "unhandledPromptBehavior": "ignore",
        "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        "goog:chromeOptions": {
            "args": arguments,
            "prefs": preferences,
            "perfLoggingPrefs": {"enableNetwork": true, "enablePage": true},
        },
    });
    match capabilities {
        Value::Object(capabilities) => capabilities,
        _ => unreachable!("an object was written"),
    }
}
