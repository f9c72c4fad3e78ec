/**
 * Fixtures for Playwright Test: `const test = base.extend<TempmailFixtures>(fixtures)`.
 *
 * Nothing of Playwright is imported: a second copy of it is an error there.
 */
import { Tempmail } from "./tempmail.js";
/** The fixtures, for `base.extend`. */
export const fixtures = {
    tempmailOptions: [{}, { option: true }],
    tempmail: async ({ tempmailOptions }, use, info) => {
        const extend = (timeout) => {
            // 0 is no timeout.
            if (info.timeout > 0)
                info.setTimeout(info.timeout + timeout);
        };
        const tempmail = new Tempmail({ onWait: extend, ...tempmailOptions });
        await use(tempmail);
        await tempmail.close();
    },
    inbox: async ({ tempmail }, use) => {
        await use(await tempmail.inbox());
    },
};
