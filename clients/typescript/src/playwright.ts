/**
 * Fixtures for Playwright Test: `const test = base.extend<TempmailFixtures>(fixtures)`.
 *
 * Nothing of Playwright is imported: a second copy of it is an error there.
 */

import type { Inbox } from "./inbox.js";
import { Tempmail, type TempmailOptions } from "./tempmail.js";

/** What a test gets. */
export interface TempmailFixtures {
  /** Options of the client; set them by `test.use({ tempmailOptions: { … } })` or in `use` of the configuration. */
  tempmailOptions: TempmailOptions;
  /** A client; its inboxes are closed after the test. Each wait extends the timeout of the test by its own. */
  tempmail: Tempmail;
  /** A fresh address, made for this test. */
  inbox: Inbox;
}

/** What is used of the information about a test. */
interface TestInfo {
  timeout: number;
  setTimeout(timeout: number): void;
}

type Use<Fixture> = (fixture: Fixture) => Promise<void>;

/** The fixtures, for `base.extend`. */
export const fixtures: {
  tempmailOptions: [TempmailOptions, { option: true }];
  tempmail: (needs: { tempmailOptions: TempmailOptions }, use: Use<Tempmail>, info: TestInfo) => Promise<void>;
  inbox: (needs: { tempmail: Tempmail }, use: Use<Inbox>) => Promise<void>;
} = {
  tempmailOptions: [{}, { option: true }],

  tempmail: async ({ tempmailOptions }, use, info) => {
    const extend = (timeout: number) => {
      // 0 is no timeout.
      if (info.timeout > 0) info.setTimeout(info.timeout + timeout);
    };
    const tempmail = new Tempmail({ onWait: extend, ...tempmailOptions });
    await use(tempmail);
    await tempmail.close();
  },

  inbox: async ({ tempmail }, use) => {
    await use(await tempmail.inbox());
  },
};
