import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { suggestion, UsageError } from '@keelson/core/internal';
import { parseConnectionLimits } from './connection-limits.ts';
import { parseMemoryBudgets } from './memory-budgets.ts';
import { type ListenAddress, type LogLevel, logLevels, type ServerOptions } from './options.ts';
import { text } from './raw-values.ts';
import { parseHistory, parseReads, parseStorage, parseWatchWindow } from './storage-choice.ts';

/** Parses a value: text from a flag or variable, any YAML value from a config file. @throws UsageError */
type ValueParser<T> = (raw: unknown, source: string) => T;

const flag: ValueParser<boolean> = (raw, source) => {
  if (raw === true || raw === 'true' || raw === '1') return true;
  if (raw === false || raw === 'false' || raw === '0') return false;
  throw new UsageError(`${source} must be true or false, not ${JSON.stringify(raw)}`);
};

const listen: ValueParser<ListenAddress> = (raw, source) => {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^:\s]+):(\d{1,5})$/.exec(text(raw, source));
  const port = Number(match?.[2]);
  if (match === null || port > 65_535)
    throw new UsageError(`${source} must be HOST:PORT, e.g. 127.0.0.1:6443, not ${JSON.stringify(raw)}`);
  return { host: (match[1] ?? '').replace(/^\[|\]$/g, ''), port };
};

const modules: ValueParser<readonly string[]> = (raw, source) => {
  const list = Array.isArray(raw) ? raw : typeof raw === 'string' ? raw.split(',') : [raw];
  return list.map((item) => text(item, source));
};

const hosts: ValueParser<readonly string[]> = (raw, source) =>
  modules(raw, source).map((host) => {
    if (isIP(host) !== 0 || /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(host)) return host;
    throw new UsageError(`${source} must be a host name or an IP address without a port, not ${JSON.stringify(host)}`);
  });

const logLevel: ValueParser<LogLevel> = (raw, source) => {
  const level = logLevels.find((known) => known === raw);
  if (level === undefined)
    throw new UsageError(`${source} must be one of ${logLevels.join(', ')}${suggestion(String(raw), logLevels)}`);
  return level;
};

const brand: ValueParser<ServerOptions['brand']> = (raw, source) => {
  const {
    vendor = 'kubernetes',
    metaGroup = 'meta.k8s.io',
    ...rest
  } = (typeof raw === 'object' && raw !== null ? raw : {}) as Record<string, unknown>;
  const unknown = Object.keys(rest)[0];
  if (typeof raw !== 'object' || raw === null)
    throw new UsageError(`${source} must be an object with vendor and metaGroup`);
  if (unknown !== undefined)
    throw new UsageError(`${source} has no key ${unknown}${suggestion(unknown, ['vendor', 'metaGroup'])}`);
  if (!/^[a-z0-9][a-z0-9.-]*$/.test(String(vendor)))
    throw new UsageError(`${source}.vendor must consist of a-z, 0-9, "." and "-", not ${JSON.stringify(vendor)}`);
  return { vendor: text(vendor, `${source}.vendor`), metaGroup: text(metaGroup, `${source}.metaGroup`) };
};

const positiveInteger: ValueParser<number> = (raw, source) => {
  const value = Number(raw);
  if (!Number.isSafeInteger(value) || value <= 0)
    throw new UsageError(`${source} must be a positive whole number, not ${JSON.stringify(raw)}`);
  return value;
};

/** Parser of each option. */
export const valueParsers: { readonly [K in keyof ServerOptions]-?: ValueParser<Required<ServerOptions>[K]> } = {
  storage: parseStorage,
  history: parseHistory,
  watchWindow: parseWatchWindow,
  memoryBudgets: parseMemoryBudgets,
  reads: parseReads,
  acceptNewStore: flag,
  controllers: flag,
  agent: flag,
  agentCertificateAuthority: (raw, source) => resolve(text(raw, source)),
  listen,
  insecure: flag,
  allowedHosts: hosts,
  tokenAuthFile: (raw, source) => resolve(text(raw, source)),
  data: (raw, source) => resolve(text(raw, source)),
  kinds: modules,
  logLevel,
  brand,
  connectionLimits: parseConnectionLimits,
  continueTokenLifetimeMs: positiveInteger,
};
