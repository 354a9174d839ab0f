import {
  isJsonObject,
  nonNegativeDuration,
  rejectUnknownKeys,
  requiredText,
  UsageError,
  wholeNumber,
  wrongValue,
} from '@keelson/core/internal';
import type { FlowControlOptions, FlowSchema, HttpLimits, PriorityLevel } from '@keelson/http-koa';

/**
 * Limits on concurrent requests and their division among users, and timeouts of requests and watches. An absent value
 * has its default.
 */
export type FlowControlChoice = Partial<
  FlowControlOptions &
    Pick<
      HttpLimits,
      | 'requestsInFlight'
      | 'watches'
      | 'watchesPerUser'
      | 'connects'
      | 'connectsPerUser'
      | 'requestTimeoutMs'
      | 'watchTimeoutMs'
    >
>;

type RawObject = Readonly<Record<string, unknown>>;

const numbers = [
  'requestsInFlight',
  'watches',
  'watchesPerUser',
  'connects',
  'connectsPerUser',
  'queueLength',
  'levelQueueLength',
] as const;
const times = ['queueWait', 'requestTimeout', 'watchTimeout'] as const;
const keys = [...numbers, ...times, 'levels', 'schemas'] as const;
const conditions = ['users', 'groups', 'verbs', 'resources', 'namespaces', 'paths'] as const;
/**
 * Names of the priority levels that exist without configuration. The list of the HTTP server is not imported, because a
 * control plane without HTTP does not load that server.
 */
const builtinLevels = [
  'exempt',
  'leader-election',
  'node-high',
  'system',
  'workload-high',
  'workload-low',
  'global-default',
  'catch-all',
];

function objects(raw: unknown, source: string): RawObject[] {
  if (!Array.isArray(raw) || !raw.every(isJsonObject)) throw wrongValue(source, 'a list of objects', raw);
  return raw;
}

function texts(raw: unknown, source: string): readonly string[] {
  if (!Array.isArray(raw) || raw.length === 0) throw wrongValue(source, 'a list of texts', raw);
  return raw.map((value: unknown, index) => requiredText(value, `${source}[${index}]`));
}

function parseLevel(raw: RawObject, source: string): PriorityLevel {
  rejectUnknownKeys(raw, ['name', 'shares'], source);
  const name = requiredText(raw['name'], `${source}.name`);
  if (name === 'exempt') throw new UsageError(`${source}.name must not be exempt, which has no limit`);
  return { name, shares: wholeNumber(raw['shares'], `${source}.shares`, 1) };
}

function parseSchema(raw: RawObject, source: string, levels: readonly string[]): FlowSchema {
  rejectUnknownKeys(raw, ['name', 'level', 'distinguisher', ...conditions], source);
  const level = requiredText(raw['level'], `${source}.level`);
  if (!levels.includes(level))
    throw new UsageError(`${source}.level must be one of ${levels.join(', ')}, not ${level}`);
  const distinguisher = raw['distinguisher'] ?? 'user';
  if (distinguisher !== 'user' && distinguisher !== 'namespace') {
    throw wrongValue(`${source}.distinguisher`, 'user or namespace', distinguisher);
  }
  const given = conditions.filter((key) => raw[key] !== undefined);
  return {
    name: requiredText(raw['name'], `${source}.name`),
    level,
    distinguisher,
    ...Object.fromEntries(given.map((key) => [key, texts(raw[key], `${source}.${key}`)])),
  };
}

/** Parses a duration. Only the wait in a queue may be 0: a request with a timeout of 0 could never succeed. */
function parseTime(raw: unknown, key: (typeof times)[number], source: string): number {
  const ms = nonNegativeDuration(raw, `${source}.${key}`);
  if (ms === 0 && key !== 'queueWait') throw wrongValue(`${source}.${key}`, 'a duration above 0', raw);
  return ms;
}

/** Parses {@link FlowControlChoice} of a config file; times are durations such as `15s`. @throws UsageError */
export function parseFlowControl(raw: unknown, source: string): FlowControlChoice {
  if (!isJsonObject(raw)) throw new UsageError(`${source} must be an object with some of ${keys.join(', ')}`);
  rejectUnknownKeys(raw, keys, source);
  const { levels, schemas } = raw;
  const own =
    levels === undefined
      ? []
      : objects(levels, `${source}.levels`).map((level, index) => parseLevel(level, `${source}.levels[${index}]`));
  const known = [...new Set([...builtinLevels, ...own.map(({ name }) => name)])];
  const given = numbers.filter((key) => raw[key] !== undefined);
  const givenTimes = times.filter((key) => raw[key] !== undefined);
  return {
    ...Object.fromEntries(given.map((key) => [key, wholeNumber(raw[key], `${source}.${key}`, 1)])),
    ...Object.fromEntries(givenTimes.map((key) => [`${key}Ms`, parseTime(raw[key], key, source)])),
    ...(own.length === 0 ? {} : { levels: own }),
    ...(schemas === undefined
      ? {}
      : {
          schemas: objects(schemas, `${source}.schemas`).map((schema, index) =>
            parseSchema(schema, `${source}.schemas[${index}]`, known),
          ),
        }),
  };
}
