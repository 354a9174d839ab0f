import { open } from 'node:fs/promises';
import type { Logger, UserInfo } from '@keelson/core';
import { UsageError } from '../base/usage-error.ts';

/** A token and whose it is. */
export interface KnownToken {
  readonly token: string;
  readonly user: UserInfo;
}

const othersMayUse = 0o077;
/** Longer tokens do not fit a header beside everything else. */
const maxTokenLength = 8192;

/** Why a record is no token with its user, or undefined. */
function problemOf(fields: readonly string[]): string | undefined {
  const [token = '', name = ''] = fields;
  if (fields.length < 3) return 'needs token,user,uid and perhaps groups';
  if (fields.length > 4)
    return 'has more than four columns; several groups stand in quotes: token,user,uid,"group1,group2"';
  if (!/^[\x21-\x7e]+$/.test(token)) return 'the token must be printable characters without spaces';
  if (token.length > maxTokenLength) return `the token has more than ${maxTokenLength} characters`;
  if (name.trim() === '') return 'the user has no name';
  return undefined;
}

function userOf([, name = '', uid = '', groups = '']: readonly string[]): UserInfo {
  const named = groups
    .split(',')
    .map((group) => group.trim())
    .filter((group) => group !== '' && group !== 'system:authenticated');
  return {
    name: name.trim(),
    ...(uid.trim() === '' ? {} : { uid: uid.trim() }),
    groups: [...named, 'system:authenticated'],
  };
}

/**
 * Reads lines `token,user,uid,"group1,group2"`, as kube-apiserver's `--token-auth-file` has them; the groups may be
 * left out. A message names the line, never the token.
 *
 * @throws UsageError
 */
export function parseTokenFile(text: string, source: string): KnownToken[] {
  const lineOf = new Map<string, number>();
  const tokens: KnownToken[] = [];
  for (const [index, line] of text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    if (line.trim() === '') continue;
    const at = `${source}, line ${index + 1}`;
    let fields: string[];
    try {
      fields = parseCsvLine(line);
    } catch (error) {
      if (error instanceof CsvError) throw new UsageError(`${at}: ${error.message}`);
      throw error;
    }
    const problem = problemOf(fields);
    if (problem !== undefined) throw new UsageError(`${at}: ${problem}`);
    const [token = ''] = fields;
    const earlier = lineOf.get(token);
    if (earlier !== undefined) throw new UsageError(`${at}: the token is that of line ${earlier}`);
    lineOf.set(token, index + 1);
    tokens.push({ token, user: userOf(fields) });
  }
  if (tokens.length === 0) throw new UsageError(`${source} holds no token; a line is token,user,uid,"group1,group2"`);
  return tokens;
}

/** Reads the file of --token-auth-file once; who changes it starts the server again. @throws UsageError */
export async function readTokenFile(path: string, logger: Logger): Promise<KnownToken[]> {
  const source = `--token-auth-file ${path}`;
  let text: string;
  let mode: number;
  try {
    const file = await open(path);
    try {
      mode = (await file.stat()).mode;
      text = await file.readFile('utf8');
    } finally {
      await file.close();
    }
  } catch (error) {
    throw new UsageError(`${source} cannot be read: ${(error as Error).message}`);
  }
  if ((mode & othersMayUse) !== 0) {
    logger.warn('others than its owner may read or write the file of tokens; chmod 600 keeps them out', { path });
  }
  return parseTokenFile(text, source);
}

/** A line that is no comma-separated record; the message says why. */
export class CsvError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CsvError';
  }
}

/**
 * The fields of one line (RFC 4180): separated by commas, in quotes where they hold commas, a quote in quotes doubled.
 *
 * @throws CsvError
 */
export function parseCsvLine(line: string): string[] {
  const fields: string[] = [];
  const field = /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y;
  for (let more = true; more; ) {
    const found = field.exec(line);
    if (found === null) throw new CsvError('a quote begins and ends a whole column, and is doubled inside');
    const [, quoted, plain = '', end] = found;
    fields.push(quoted?.replaceAll('""', '"') ?? plain);
    more = end === ',';
  }
  return fields;
}
