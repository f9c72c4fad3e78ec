/** What to do about a code; servers to come may have others. */
export declare function advice(code: string): string;
