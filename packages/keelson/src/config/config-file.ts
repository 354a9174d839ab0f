import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parseYaml } from '@keelson/core';
import type { RawOptions } from './command-line.ts';
import { optionTable } from './options.ts';
import { suggestion } from './suggest.ts';
import { UsageError } from './usage-error.ts';

/** Reads a YAML or JSON config file. Relative paths in it are relative to the file. */
export async function readConfigFile(path: string): Promise<RawOptions> {
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (cause) {
    throw new UsageError(`--config ${path} cannot be read: ${(cause as Error).message}`);
  }
  const { value, duplicateFields } = parse(bytes, path);
  if (duplicateFields[0] !== undefined) throw new UsageError(`--config ${path} gives ${duplicateFields[0]} twice`);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new UsageError(`--config ${path} must hold an object`);
  const keys = optionTable.map((row) => row.key).filter((key) => key !== 'config');
  for (const key of Object.keys(value)) {
    if (!(keys as string[]).includes(key))
      throw new UsageError(`--config ${path} has an unknown key ${key}${suggestion(key, keys)}`);
  }
  return withAbsolutePaths(value as Record<string, unknown>, dirname(resolve(path)));
}

function withAbsolutePaths(raw: Record<string, unknown>, base: string): RawOptions {
  const out = { ...raw };
  for (const key of ['data', 'tokenAuthFile']) if (typeof out[key] === 'string') out[key] = resolve(base, out[key]);
  if (out['storage'] !== undefined) out['storage'] = storageWithAbsolutePaths(out['storage'], base);
  const kinds = out['kinds'];
  if (Array.isArray(kinds))
    out['kinds'] = kinds.map((item: unknown) =>
      typeof item === 'string' && item.startsWith('.') ? resolve(base, item) : item,
    );
  return out;
}

/** Modules of adapters and directories of embedded stores; everything else is left for the parser to judge. */
function storageWithAbsolutePaths(raw: unknown, base: string): unknown {
  if (typeof raw === 'string')
    return raw.replace(/^lmdb:(?=.)(.*)$/s, (_, path: string) => `lmdb:${resolve(base, path)}`);
  if (Array.isArray(raw)) return raw.map((item) => storageWithAbsolutePaths(item, base));
  if (typeof raw !== 'object' || raw === null) return raw;
  const out: Record<string, unknown> = { ...raw };
  for (const key of ['default', 'routes', 'storage', 'url'])
    if (out[key] !== undefined) out[key] = storageWithAbsolutePaths(out[key], base);
  const { adapter, path } = out;
  if (typeof adapter === 'string' && adapter.startsWith('.')) out['adapter'] = resolve(base, adapter);
  if (adapter === 'lmdb' && typeof path === 'string') out['path'] = resolve(base, path);
  return out;
}

function parse(bytes: Buffer, path: string): ReturnType<typeof parseYaml> {
  try {
    return parseYaml(bytes);
  } catch (cause) {
    throw new UsageError(`--config ${path} is not valid YAML: ${(cause as Error).message}`);
  }
}
