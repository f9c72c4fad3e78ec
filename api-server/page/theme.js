// Before the first paint, and so not a module: the theme that was chosen, if it is not the system's.
try {
  const theme = JSON.parse(localStorage.getItem("tempmail.theme"));
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is blocked: the system's theme.
}
