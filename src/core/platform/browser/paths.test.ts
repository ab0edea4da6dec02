import { posix } from "node:path";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import * as paths from "./paths.js";

const name = fc.constantFrom("a", "b", "..", ".", "", "file.txt");
const path = fc
  .tuple(fc.boolean(), fc.array(name, { maxLength: 5 }))
  .map(([isAbsolute, names]) => (isAbsolute ? "/" : "") + names.join("/"));

describe("paths of a browser equal Node's POSIX paths from the root folder", () => {
  it("join", () =>
    fc.assert(
      fc.property(path, path, (a, b) => {
        expect(paths.join(a, b)).toBe(posix.join(a, b));
      }),
    ));

  it("resolve", () =>
    fc.assert(
      fc.property(path, path, (a, b) => {
        expect(paths.resolve(a, b)).toBe(posix.resolve("/", a, b));
      }),
    ));

  it("relative", () =>
    fc.assert(
      fc.property(path, path, (a, b) => {
        const [from, to] = [posix.resolve("/", a), posix.resolve("/", b)];
        expect(paths.relative(from, to)).toBe(posix.relative(from, to));
      }),
    ));

  it("dirname and basename", () =>
    fc.assert(
      fc.property(path, (a) => {
        const normal = posix.join("/", a).replace(/(?<=.)\/$/, "");
        expect(paths.dirname(normal)).toBe(posix.dirname(normal));
        expect(paths.basename(normal)).toBe(posix.basename(normal));
      }),
    ));
});
