import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["vitest/**/*.test.ts", "examples/vitest/**/*.test.ts"],
    // A test restarts the server.
    fileParallelism: false,
    testTimeout: 180_000,
  },
});
