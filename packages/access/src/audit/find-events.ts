import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { createGunzip } from 'node:zlib';
import { timeMs } from '@keelson/core';
import { parseJsonObject, UsageError } from '@keelson/core/internal';
import { rotatedFiles } from './audit-log.ts';

/** Conditions of a search; an absent one matches every request. */
export interface EventQuery {
  readonly user?: string | undefined;
  /** `delete` includes `deletecollection`. */
  readonly verb?: string | undefined;
  /** Plural, optionally with group and subresource: `deployments.apps`, `pods/exec`. */
  readonly resource?: string | undefined;
  readonly namespace?: string | undefined;
  /** Name of an object. Requests on whole collections that may have changed the object match too. */
  readonly name?: string | undefined;
  /** Epoch milliseconds. */
  readonly since?: number | undefined;
}

/** A request in the log. Texts that do not apply are empty. */
export interface FoundEvent {
  readonly time: string;
  readonly user: string;
  /** The impersonated user; empty without impersonation. */
  readonly impersonated: string;
  readonly verb: string;
  /** `configmaps`, `deployments.apps`, `pods/exec`, or the path of a request on no resource. */
  readonly resource: string;
  readonly namespace: string;
  /** Name of the object; empty for a collection. */
  readonly name: string;
  readonly code: number;
  readonly sourceIPs: readonly string[];
  readonly userAgent: string;
}

interface LoggedEvent {
  readonly stage?: string;
  readonly verb?: string;
  readonly requestURI?: string;
  readonly user?: { readonly username?: string };
  readonly impersonatedUser?: { readonly username?: string };
  readonly sourceIPs?: readonly string[];
  readonly userAgent?: string;
  readonly objectRef?: Readonly<
    Partial<Record<'resource' | 'apiGroup' | 'subresource' | 'namespace' | 'name', string>>
  >;
  readonly responseStatus?: { readonly code?: number };
  readonly requestReceivedTimestamp?: string;
}

/** Maximum length of a line. Longer lines are no events, because the bodies of an event have at most 2 MiB. */
const maxLineLength = 8 * 1024 * 1024;
/** Last stages of a request with a valid user. The only event of any other request has the stage ResponseStarted. */
const finished = ['ResponseComplete', 'Panic'];

/**
 * Searches an audit log and its rotated files, the oldest request first. The files are read once, line by line. Lines
 * that are no events, such as the incomplete last line of a server that was killed, are skipped.
 *
 * @throws UsageError when the log does not exist
 */
export async function* findEvents(path: string, query: EventQuery): AsyncGenerator<FoundEvent, void, undefined> {
  const rotated = await rotatedFiles(path).catch(() => []);
  const exists = await stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
  if (!exists && rotated.length === 0)
    throw new UsageError(`there is no audit log ${path}; name it with --file, or enable it with --audit-log-path`);
  // A rotated file contains only events from before its rotation.
  const files = rotated.filter(({ at }) => query.since === undefined || at >= query.since).map(({ file }) => file);
  for (const file of exists ? [...files, path] : files) {
    const bytes = createReadStream(file);
    const plain = file.endsWith('.gz') ? bytes.pipe(createGunzip()) : bytes;
    bytes.on('error', (error) => plain.destroy(error));
    for await (const line of createInterface({ input: plain, crlfDelay: Number.POSITIVE_INFINITY })) {
      const event = line.length > maxLineLength ? undefined : parsed(line);
      const found = event && foundOf(event);
      if (found !== undefined && matches(found, query)) yield found;
    }
  }
}

function parsed(line: string): LoggedEvent | undefined {
  if (line.includes('"stage":"RequestReceived"')) return undefined;
  return parseJsonObject(line) as LoggedEvent | undefined;
}

function foundOf(event: LoggedEvent): FoundEvent | undefined {
  const { stage = '', objectRef: ref, responseStatus, user, verb = '' } = event;
  const rejected = stage === 'ResponseStarted' && user?.username === undefined;
  if (!finished.includes(stage) && !rejected) return undefined;
  const group = ref?.apiGroup ? `.${ref.apiGroup}` : '';
  const subresource = ref?.subresource ? `/${ref.subresource}` : '';
  return {
    time: event.requestReceivedTimestamp ?? '',
    user: user?.username ?? '<none>',
    impersonated: event.impersonatedUser?.username ?? '',
    verb,
    resource: ref === undefined ? (event.requestURI ?? '') : `${ref.resource ?? ''}${group}${subresource}`,
    namespace: ref?.namespace ?? '',
    name: ref?.name ?? '',
    code: responseStatus?.code ?? 0,
    sourceIPs: event.sourceIPs ?? [],
    userAgent: event.userAgent ?? '',
  };
}

function matches(event: FoundEvent, { user, verb, resource, namespace, name, since }: EventQuery): boolean {
  if (user !== undefined && event.user !== user && event.impersonated !== user) return false;
  if (verb !== undefined && event.verb !== verb && !(verb === 'delete' && event.verb === 'deletecollection'))
    return false;
  if (resource !== undefined && !namesResource(event.resource, resource)) return false;
  if (namespace !== undefined && event.namespace !== namespace && event.namespace !== '') return false;
  if (namespace !== undefined && event.namespace === '' && event.verb !== 'deletecollection') return false;
  if (name !== undefined && event.name !== name && !(event.verb === 'deletecollection' && event.name === ''))
    return false;
  return since === undefined || (timeMs(event.time) ?? 0) >= since;
}

/** `configmaps` matches every group, and no subresource. */
function namesResource(found: string, wanted: string): boolean {
  if (found === wanted) return true;
  const [plural = '', subresource] = found.split('/');
  return wanted === (subresource === undefined ? plural : `${plural}/${subresource}`).replace(/\.[^/]*/, '');
}
