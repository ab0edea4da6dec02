const month31 = "(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])";
const month30 = "(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)";
const leapYear = "(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
const DATE = `(?:\\d{4}-(?:${month31}|${month30}|02-(?:0[1-9]|1\\d|2[0-8]))|${leapYear}-02-29)`;
const hourMinute = "(?:[01]\\d|2[0-3]):[0-5]\\d";
const TIME = `${hourMinute}:[0-5]\\d(?:\\.\\d+)?(?:Z|[+-]${hourMinute})`;
const label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
const octet = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const IPV4 = `(?:${octet}\\.){3}${octet}`;
const group = "[0-9a-fA-F]{1,4}";
const shortened = [1, 2, 3, 4, 5, 6].map((count) => `(?:${group}:){1,${count}}(?::${group}){1,${7 - count}}`);
const IPV6 = `(?:${group}:){7}${group}|(?:${group}:){1,7}:|:(?::${group}){1,7}|::|${shortened.join("|")}`;
const escaped = "%[0-9A-Fa-f]{2}";
const pathCharacter = `(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|${escaped})`;
const tail = `(?:\\?(?:${pathCharacter}|[/?])*)?(?:#(?:${pathCharacter}|[/?])*)?`;
const hostPart = "(?:[A-Za-z0-9-]*[A-Za-z0-9])?";
const host = `(?:(?:[A-Za-z0-9]${hostPart}\\.)*[A-Za-z]${hostPart}\\.?|${IPV4})`;
const authority = `${host}(?::[1-9]\\d{0,3}|:[1-5]\\d{4})?`;
const segments = `(?:/${pathCharacter}*)*`;
// Schemes of the web need an authority, except file.
const webScheme = "(?!(?:https?|wss?|ftp):(?:[^/]|/[^/]|///|/?$))";
const URI_BODY = `[a-z][a-z0-9+.-]*:(?://${authority}${segments}|///${pathCharacter}+${segments}|/(?:${pathCharacter}+${segments})?|${pathCharacter}+${segments})${tail}`;
const URI = `^${webScheme}${URI_BODY}$`;
const segmentWithoutColon = `(?:[A-Za-z0-9._~!$&'()*+,;=@-]|${escaped})+`;
const RELATIVE = `(?://${authority}${segments}|/(?:${pathCharacter}+${segments})?|${segmentWithoutColon}${segments})?${tail}`;
// Groups are nested once.
const quantifier = "(?:[*+?]|\\{\\d{1,3},?\\}|\\{[01],[1-9]\\d?\\})?";
const classMember = "(?:[A-Za-z0-9 _.,:;/@#%&=!'\"<>~`|(){}*+?$]|\\\\[dwsDWS.\\-\\]\\[\\\\/])";
const regexAtom = `(?:(?:[A-Za-z0-9 _.,:;/@#%&=!'"<>~\`-]|\\\\[dwsDWS.^$*+?()|/\\\\\\[\\]{}]|\\[\\^?(?:${classMember}|a-z|A-Z|0-9)+-?\\])${quantifier})`;
const REGEX = `(?:${regexAtom}|\\((?:\\?:)?${regexAtom}*(?:\\|${regexAtom}+)*\\)${quantifier}|[\\^$|])*`;
const DAYS = "\\d+D";
const CLOCK = "T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S)";

const EMAIL = `[A-Za-z0-9_+-]+(?:\\.[A-Za-z0-9_+-]+)*@(?:${label}\\.)+[A-Za-z]{2,24}`;
// At most 191 of the 253 characters.
const HOSTNAME = `${label}(?:\\.${label}){0,2}`;
const POINTER = "(?:/(?:[^/~]|~[01])*)*";

/**
 * Regular expressions of the formats of JSON Schema; some are subsets of what the formats allow.
 */
export const FORMATS: Readonly<Record<string, string>> = {
  date: DATE,
  time: TIME,
  "date-time": `${DATE}T${TIME}`,
  duration: `P(?:(?:${DAYS}|\\d+M(?:${DAYS})?|\\d+Y(?:\\d+M(?:${DAYS})?)?)(?:${CLOCK})?|${CLOCK}|\\d+W)`,
  email: EMAIL,
  hostname: HOSTNAME,
  ipv4: IPV4,
  ipv6: IPV6,
  uri: URI,
  uuid: "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|0{8}-0{4}-0{4}-0{4}-0{12}",
  "json-pointer": POINTER,
  "relative-json-pointer": `(?:0|[1-9]\\d{0,8})(?:#|${POINTER})`,
  "uri-reference": `^${webScheme}(?:${URI_BODY}|${RELATIVE})$`,
  "uri-template": `(?:${pathCharacter}|[/?#]|\\{[A-Za-z0-9_]+(?:,[A-Za-z0-9_]+)*\\})*`,
  // The characters beyond ASCII are left out.
  iri: URI,
  "iri-reference": `^${webScheme}(?:${URI_BODY}|${RELATIVE})$`,
  "idn-email": EMAIL,
  "idn-hostname": HOSTNAME,
  regex: REGEX,
};
