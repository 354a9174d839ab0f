import { hash, randomBytes } from 'node:crypto';
import type { AuthenticateToken, UserInfo } from '@keelson/core';
import { UsageError } from '@keelson/core/internal';

/** A token and its user. */
export interface KnownToken {
  readonly token: string;
  readonly user: UserInfo;
}

/** Maximum length of a token. A longer one does not fit into the head of a request with other headers. */
const maxTokenLength = 8192;

/** The reason why a record is invalid, or undefined. */
function problemOf(fields: readonly string[]): string | undefined {
  const [token = '', name = ''] = fields;
  if (fields.length < 3) return 'must contain token,user,uid and optionally groups';
  if (fields.length > 4)
    return 'has more than four columns; several groups must be quoted: token,user,uid,"group1,group2"';
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
 * Parses lines `token,user,uid,"group1,group2"`, the format of kube-apiserver's `--token-auth-file`. The groups are
 * optional. Messages contain the line number, never the token.
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
    if (earlier !== undefined) throw new UsageError(`${at}: the token is already used in line ${earlier}`);
    lineOf.set(token, index + 1);
    tokens.push({ token, user: userOf(fields) });
  }
  if (tokens.length === 0)
    throw new UsageError(`${source} contains no token; the format of a line is token,user,uid,"group1,group2"`);
  return tokens;
}

/**
 * A function that replaces tokens by digests with a secret of its own, so that neither the memory nor the time of a
 * comparison reveals a token. An HMAC would cost four times as much; it is not needed, because digests are not shown to
 * clients that could extend them.
 */
export function tokenDigests(): (token: string) => string {
  const secret = randomBytes(32).toString('hex');
  return (token) => hash('sha256', secret + token, 'base64');
}

/** Finds the users of tokens in memory. Tokens are stored and compared as digests: see {@link tokenDigests}. */
export function tokenUsers(tokens: readonly KnownToken[]): AuthenticateToken {
  const digest = tokenDigests();
  const known = new Map(tokens.map(({ token, user }) => [digest(token), { user }]));
  // Tokens of a file are valid for this server only, not for other audiences.
  return (token, audiences) => (audiences.length > 0 ? undefined : known.get(digest(token)));
}

/** A line that is not a comma-separated record; the message states the reason. */
export class CsvError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CsvError';
  }
}

/**
 * The fields of one line (RFC 4180). A field with commas is enclosed in quotes; a quote within it is doubled.
 *
 * @throws CsvError
 */
export function parseCsvLine(line: string): string[] {
  const fields: string[] = [];
  const field = /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y;
  for (let more = true; more; ) {
    const found = field.exec(line);
    if (found === null)
      throw new CsvError('quotes must enclose a whole column, and quotes within a column must be doubled');
    const [, quoted, plain = '', end] = found;
    fields.push(quoted?.replaceAll('""', '"') ?? plain);
    more = end === ',';
  }
  return fields;
}
