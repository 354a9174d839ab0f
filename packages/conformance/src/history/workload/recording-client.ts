import type { Agent } from 'node:http';
import type { KubeObject } from '@keelson/core';
import type { HistoryRecorder } from '../recorder.ts';
import {
  kindOfKey,
  type ReadAt,
  type Reply,
  type SeenObject,
  type Selection,
  type WriteOperation,
} from '../records.ts';
import { type Answer, callApi } from './api-call.ts';
import {
  collectionPath,
  kindNamed,
  namePrefix,
  objectPath,
  pointParameters,
  type WireRequest,
  writeRequest,
} from './wire-requests.ts';
import { seenObject, type WorkloadKind } from './workload-kinds.ts';

/** Parses an object of a workload; undefined for an object of the server itself. */
export function workloadObject(kind: WorkloadKind, object: unknown): SeenObject | undefined {
  const name = (object as KubeObject).metadata?.name ?? '';
  return name.startsWith(namePrefix) ? seenObject(kind, object as KubeObject) : undefined;
}

export interface RecordingClientOptions {
  readonly name: string;
  readonly recorder: HistoryRecorder;
  readonly agent: Agent;
  readonly timeoutMs: number;
}

/** Makes calls and records each of them. */
export class RecordingClient {
  readonly #options: RecordingClientOptions;
  /** Base URL of the server for the next call. */
  server: string;

  constructor(server: string, options: RecordingClientOptions) {
    this.server = server;
    this.#options = options;
  }

  async write(op: WriteOperation): Promise<Reply> {
    const { recorder, name: client } = this.#options;
    const { server } = this;
    const start = recorder.now();
    const answer = await this.#send(writeRequest(op));
    const reply = this.#writeReply(op, answer);
    recorder.call({ client, server, start, op, reply });
    return reply;
  }

  /** Returns the object, `missing`, or undefined when the call has failed. */
  async get(key: string, at: ReadAt): Promise<SeenObject | 'missing' | undefined> {
    const { recorder, name: client } = this.#options;
    const { server } = this;
    const start = recorder.now();
    const query = pointParameters(at).toString();
    const answer = await this.#send({ method: 'GET', path: `${objectPath(key)}${query === '' ? '' : `?${query}`}` });
    let object: SeenObject | undefined;
    let reply: Reply = failure(answer) ?? { is: 'unknown', why: 'no object' };
    if (answer.answered && answer.status === 200) {
      object = seenObject(kindNamed(kindOfKey(key)), answer.body as unknown as KubeObject);
      reply = { is: 'ok', object: recorder.object(object) };
    }
    recorder.call({ client, server, start, op: { do: 'get', key, at }, reply });
    return object ?? (reply.is === 'refused' && reply.code === 404 ? 'missing' : undefined);
  }

  /** Lists all pages. Returns the revision and the objects; undefined when a page could not be read. */
  async list(
    selection: Selection,
    at: ReadAt,
    limit: number | undefined,
    betweenPages: () => Promise<void> = async () => {},
  ): Promise<{ readonly revision: number; readonly objects: readonly SeenObject[] } | undefined> {
    const { recorder, name: client } = this.#options;
    const kind = kindNamed(selection.kind);
    const list = recorder.nextList();
    const objects: SeenObject[] = [];
    let token = '';
    for (let page = 0; ; page++) {
      const { server } = this;
      const start = recorder.now();
      const parameters = token === '' ? pointParameters(at) : new URLSearchParams({ continue: token });
      if (limit !== undefined) parameters.set('limit', String(limit));
      const answer = await this.#send({
        method: 'GET',
        path: collectionPath(selection, Object.fromEntries(parameters)),
      });
      const op = { do: 'list', selection, at, list, page, ...(limit === undefined ? {} : { limit }) } as const;
      if (!answer.answered || answer.status !== 200) {
        recorder.call({ client, server, start, op, reply: failure(answer) ?? { is: 'unknown', why: 'odd answer' } });
        return undefined;
      }
      const { metadata, items } = answer.body as {
        metadata: { resourceVersion: string; continue?: string };
        items: unknown[];
      };
      const seen = items.map((item) => workloadObject(kind, item)).filter((object) => object !== undefined);
      objects.push(...seen);
      token = metadata.continue ?? '';
      const revision = Number(metadata.resourceVersion);
      const ids = seen.map((object) => recorder.object(object));
      recorder.call({ client, server, start, op, reply: { is: 'ok', revision, items: ids, more: token !== '' } });
      if (token === '') return { revision, objects };
      await betweenPages();
    }
  }

  #send(request: WireRequest): Promise<Answer> {
    const { agent, timeoutMs } = this.#options;
    return callApi({ agent, server: this.server, timeoutMs, ...request });
  }

  #writeReply(op: WriteOperation, answer: Answer): Reply {
    const failed = failure(answer);
    if (failed !== undefined || !answer.answered) return failed ?? { is: 'unknown', why: 'no answer' };
    if (op.do !== 'delete') {
      const object = seenObject(kindNamed(kindOfKey(op.key)), answer.body as unknown as KubeObject);
      return { is: 'ok', object: this.#options.recorder.object(object) };
    }
    const body = answer.body as { details?: { uid?: string }; metadata?: { uid?: string } };
    return { is: 'ok', uid: body.details?.uid ?? body.metadata?.uid ?? '' };
  }
}

/** Returns undefined for a success. After 5xx other than 503, and after a lost connection, the outcome is unknown. */
function failure(answer: Answer): Reply | undefined {
  if (!answer.answered)
    return answer.sent ? { is: 'unknown', why: answer.why } : { is: 'refused', code: 0, reason: answer.why };
  if (answer.status < 300) return undefined;
  const reason = String(answer.body['reason'] ?? '');
  if (answer.status >= 500 && answer.status !== 503) return { is: 'unknown', why: `${answer.status} ${reason}` };
  return { is: 'refused', code: answer.status, reason };
}
