import type { IncomingMessage } from 'node:http';
import type { UserInfo } from '@keelson/core';
import { authenticatedUser } from './authenticated-user.ts';

/** Headers by which an authenticating front proxy states the user. */
export interface RequestHeaders {
  /** Names of headers with the user name; the first one present is used. */
  readonly username: readonly string[];
  readonly uid?: readonly string[];
  readonly groups?: readonly string[];
  /** Prefixes of headers whose rest of the name is the key of an extra field. */
  readonly extraPrefixes?: readonly string[];
}

const latin1 = (value: string): string => Buffer.from(value, 'latin1').toString('utf8');

/** All values of the first header of the list that has one. */
function valuesOf(names: readonly string[] | undefined, headers: ReadonlyMap<string, readonly string[]>): string[] {
  for (const name of names ?? []) {
    const values = (headers.get(name.toLowerCase()) ?? []).filter((value) => value !== '');
    if (values.length > 0) return values;
  }
  return [];
}

function decodedKey(key: string): string {
  try {
    return decodeURIComponent(key).toLowerCase();
  } catch {
    return key;
  }
}

/** The user stated by a front proxy; undefined without a user name. The caller has verified the proxy. */
export function requestHeaderUser({ rawHeaders }: IncomingMessage, names: RequestHeaders): UserInfo | undefined {
  const headers = new Map<string, string[]>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase();
    const values = headers.get(name);
    // Node decodes header bytes as Latin-1; proxies send names in UTF-8.
    const value = latin1(rawHeaders[at + 1] ?? '');
    if (values === undefined) headers.set(name, [value]);
    else values.push(value);
  }
  const [name] = valuesOf(names.username, headers);
  if (name === undefined) return undefined;
  const [uid] = valuesOf(names.uid, headers);
  const extra = new Map<string, readonly string[]>();
  for (const prefix of names.extraPrefixes ?? []) {
    for (const [header, values] of headers) {
      if (header.length > prefix.length && header.startsWith(prefix.toLowerCase())) {
        const key = decodedKey(header.slice(prefix.length));
        extra.set(key, [...(extra.get(key) ?? []), ...values]);
      }
    }
  }
  // Unlike the name, groups are collected from every listed header.
  const groups = (names.groups ?? []).flatMap((header) => valuesOf([header], headers));
  return authenticatedUser({
    name,
    ...(uid === undefined ? {} : { uid }),
    groups,
    ...(extra.size > 0 ? { extra: Object.fromEntries(extra) } : {}),
  });
}
