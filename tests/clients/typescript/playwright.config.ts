import { defineConfig } from "@playwright/test";

export default defineConfig({
  testMatch: ["playwright/**/*.spec.ts", "examples/playwright/**/*.spec.ts"],
  timeout: 60_000,
  workers: 1,
  use: {
    baseURL: process.env.SITE_URL!,
    // Chromium needs its own sandbox off where root runs it.
    launchOptions: { executablePath: process.env.CHROMIUM!, chromiumSandbox: process.getuid?.() !== 0 },
  },
});
