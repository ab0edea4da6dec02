import { defineSettings, text } from "../../../core/settings.js";

/** Options that name where the workers of a run are. */
export const workersOptions = defineSettings(
  {
    redis: text({
      valueName: "url",
      description:
        "Redis or Valkey server of the workers: redis:// or rediss://. Default: LLAMAGYM_REDIS_URL, for workers.",
    }),
    workersFolder: text({
      valueName: "folder",
      description:
        "Directory that all machines share, instead of Redis. With Redis, it carries the trained values only.",
    }),
  },
  { group: "Workers", changeable: "resume" },
);
