import { defineSettings, integer, text } from "../../core/settings.js";

/** Where a server listens. */
export const listenOptions = defineSettings(
  {
    host: text({
      default: "127.0.0.1",
      valueName: "address",
      description: "Address to listen on; any but this machine's needs an API key.",
    }),
    port: integer({ default: 8080, min: 0, max: 65_535, description: "Port; 0 takes a free one." }),
    apiKey: text({
      valueName: "key",
      defaultText: "LLAMAGYM_API_KEY",
      description: "Key that clients must send. An environment variable hides it from other users of the machine.",
    }),
  },
  { group: "Server", common: true },
);

/** Options of a server. */
export const serverOptions = {
  ...listenOptions,
  ...defineSettings(
    {
      maxRequests: integer({
        default: 1024,
        min: 1,
        description: "Requests that run or wait; more are refused with status 429.",
      }),
    },
    { group: "Server" },
  ),
};

/** Returns the key in LLAMAGYM_API_KEY; an empty one, which any client would have, is none. */
export const readApiKey = (): string | undefined => process.env.LLAMAGYM_API_KEY || undefined;
