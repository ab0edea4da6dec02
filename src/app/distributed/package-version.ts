import { createRequire } from "node:module";

/** Version of the package. */
export const { version: PACKAGE_VERSION } = createRequire(import.meta.url)("../../../package.json") as {
  readonly version: string;
};
