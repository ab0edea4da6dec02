import { expect, it } from "vitest";
import { crc32c, maskedCrc32c } from "./crc32c.js";

it("matches the checksums of RFC 3720, appendix B.4", () => {
  expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa);
  expect(crc32c(new Uint8Array(32).fill(0xff))).toBe(0x62a8ab43);
  expect(crc32c(Uint8Array.from({ length: 32 }, (_, index) => index))).toBe(0x46dd794e);
  expect(crc32c(Uint8Array.from({ length: 32 }, (_, index) => 31 - index))).toBe(0x113fdb5c);
  expect(crc32c(new TextEncoder().encode("123456789"))).toBe(0xe3069283);
});

it("masks the checksums of a TFRecord", () => {
  // 0xe3069283 rotated right by 15 is 0x2507c60d; plus 0xa282ead8.
  expect(maskedCrc32c(new TextEncoder().encode("123456789"))).toBe((0x2507c60d + 0xa282ead8) >>> 0);
});
