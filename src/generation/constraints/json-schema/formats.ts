const month31 = "(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])";
const month30 = "(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)";
const DATE = `\\d{4}-(?:${month31}|${month30}|02-(?:0[1-9]|1\\d|2[0-8]))`;
const hourMinute = "(?:[01]\\d|2[0-3]):[0-5]\\d";
const TIME = `${hourMinute}:[0-5]\\d(?:\\.\\d{1,6})?(?:Z|[+-]${hourMinute})`;
const label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
const octet = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const IPV4 = `(?:${octet}\\.){3}${octet}`;
const group = "[0-9a-fA-F]{1,4}";
const shortened = [1, 2, 3, 4, 5, 6].map((count) => `(?:${group}:){1,${count}}(?::${group}){1,${7 - count}}`);
const pathCharacter = "(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})";

/** Regular expressions of the formats of JSON Schema: subsets of what the formats allow, such as no February 29. */
export const FORMATS: Readonly<Record<string, string>> = {
  date: DATE,
  time: TIME,
  "date-time": `${DATE}T${TIME}`,
  email: `[A-Za-z0-9_+-]+(?:\\.[A-Za-z0-9_+-]+)*@(?:${label}\\.)+[A-Za-z]{2,24}`,
  // At most 191 of the 253 characters.
  hostname: `${label}(?:\\.${label}){0,2}`,
  ipv4: IPV4,
  ipv6: `(?:${group}:){7}${group}|(?:${group}:){1,7}:|:(?::${group}){1,7}|::|${shortened.join("|")}`,
  uri: `https?://${label}(?:\\.${label})*(?::[1-9]\\d{0,3})?(?:/${pathCharacter}*)?(?:\\?${pathCharacter}*)?(?:#${pathCharacter}*)?`,
  uuid: "[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
};
