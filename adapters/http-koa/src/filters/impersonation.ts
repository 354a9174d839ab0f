import type { IncomingMessage } from 'node:http';
import { type RequestAttributes, statusErrors, type UserInfo } from '@keelson/core';
import type { Authorize } from '../options.ts';
import { requireAllowed } from './authorization.ts';

/** Who a request wants to be taken for. */
interface WantedUser {
  name: string | undefined;
  uid: string | undefined;
  readonly groups: string[];
  readonly extra: Map<string, string[]>;
}

const prefix = 'impersonate-';
const extraPrefix = 'impersonate-extra-';
const serviceAccountName = /^system:serviceaccount:([^:]+):([^:]+)$/;
const authenticated = 'system:authenticated';
const unauthenticated = 'system:unauthenticated';

function decodedKey(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

/** The value of a header that may be sent once and not be empty. @throws StatusError 400 */
function single(header: string, before: string | undefined, value: string): string {
  if (before !== undefined)
    throw statusErrors.badRequest(`the header ${JSON.stringify(header)} was sent more than once`);
  if (value.trim() === '') throw statusErrors.badRequest(`the header ${JSON.stringify(header)} has no value`);
  return value;
}

/** Reads the headers; undefined for nearly every request. Raw headers keep repeated ones apart. */
function wantedUser(request: IncomingMessage): WantedUser | undefined {
  const { rawHeaders } = request;
  let wanted: WantedUser | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i] ?? '';
    if (raw.length <= prefix.length || (raw.charCodeAt(0) | 0x20) !== 0x69) continue;
    const name = raw.toLowerCase();
    if (!name.startsWith(prefix)) continue;
    // Node reads header bytes as Latin-1; clients send names in UTF-8.
    const value = Buffer.from(rawHeaders[i + 1] ?? '', 'latin1').toString();
    wanted ??= { name: undefined, uid: undefined, groups: [], extra: new Map() };
    if (name === 'impersonate-user') wanted.name = single(raw, wanted.name, value);
    else if (name === 'impersonate-uid') wanted.uid = single(raw, wanted.uid, value);
    else if (name === 'impersonate-group') wanted.groups.push(value);
    else if (name.startsWith(extraPrefix)) {
      const key = decodedKey(name.slice(extraPrefix.length));
      wanted.extra.set(key, [...(wanted.extra.get(key) ?? []), value]);
    } else {
      // To ignore it would serve the request with rights that the client wanted to give up.
      throw statusErrors.badRequest(`the header ${JSON.stringify(raw)} is not supported`);
    }
  }
  return wanted;
}

type Question = Pick<RequestAttributes, 'apiGroup' | 'resource' | 'subresource' | 'namespace' | 'name'>;

/** The authorizations that impersonating this user requires: see docs/reference/api-rules.md#impersonation. */
function questionsFor(name: string, { uid, groups, extra }: WantedUser): Question[] {
  const account = serviceAccountName.exec(name);
  const plain = { apiGroup: '', subresource: '', namespace: '' };
  const questions: Question[] = [
    account
      ? { ...plain, resource: 'serviceaccounts', namespace: account[1] ?? '', name: account[2] ?? '' }
      : { ...plain, resource: 'users', name },
    ...groups.map((group) => ({ ...plain, resource: 'groups', name: group })),
  ];
  const identity = { ...plain, apiGroup: 'authentication.k8s.io' };
  if (uid) questions.push({ ...identity, resource: 'uids', name: uid });
  for (const [key, values] of extra) {
    for (const value of values) questions.push({ ...identity, resource: 'userextras', subresource: key, name: value });
  }
  return questions;
}

function groupsOf(name: string, asked: readonly string[]): readonly string[] {
  const account = serviceAccountName.exec(name);
  const groups =
    asked.length === 0 && account ? ['system:serviceaccounts', `system:serviceaccounts:${account[1]}`] : asked;
  if (name === 'system:anonymous') return groups.includes(unauthenticated) ? groups : [...groups, unauthenticated];
  return groups.includes(authenticated) || groups.includes(unauthenticated) ? groups : [...groups, authenticated];
}

async function become(
  wanted: WantedUser,
  attributes: RequestAttributes,
  user: UserInfo,
  authorize: Authorize,
): Promise<UserInfo> {
  const { name, uid, groups, extra } = wanted;
  if (name === undefined) {
    throw statusErrors.badRequest('a group, uid or extra field was requested without impersonating a user');
  }
  for (const question of questionsFor(name, wanted)) {
    const asked: RequestAttributes = {
      ...attributes,
      ...question,
      verb: 'impersonate',
      isResourceRequest: true,
      named: true,
    };
    requireAllowed(await authorize(asked, user), asked, user);
  }
  return {
    name,
    groups: groupsOf(name, groups),
    ...(uid ? { uid } : {}),
    ...(extra.size > 0 ? { extra: Object.fromEntries(extra) } : {}),
  };
}

/**
 * The user whom a request is made as: undefined when it is made as its own. From here on only that user counts.
 *
 * @throws StatusError 403 when the user may not, 400 for headers that name no user or are not supported.
 */
export function impersonatedUser(
  request: IncomingMessage,
  attributes: RequestAttributes,
  user: UserInfo,
  authorize: Authorize,
): Promise<UserInfo> | undefined {
  const wanted = wantedUser(request);
  return wanted && become(wanted, attributes, user, authorize);
}
