import { type Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { KubeObject } from '@keelson/core';
import type { HistoryRecorder } from '../recorder.ts';
import type { Selection, WatchClosed, WatchOpened } from '../records.ts';
import { workloadObject } from './recording-client.ts';
import { collectionPath, kindNamed } from './wire-requests.ts';
import type { WorkloadKind } from './workload-kinds.ts';

export interface WatcherOptions {
  readonly name: string;
  readonly selection: Selection;
  readonly recorder: HistoryRecorder;
  readonly agent: Agent;
}

/** Parameters of one session of a watch. */
export interface SessionPlan {
  readonly server: string;
  /** Revision at which the session begins; default: the position of the watch. */
  readonly from?: WatchOpened['from'];
  readonly timeoutSeconds: number;
  /** Requests a bookmark after the initial state. */
  readonly sendInitialEvents?: boolean;
}

interface Frame {
  readonly type: string;
  readonly object: KubeObject & { readonly code?: number };
}

/** Time after the expected end of a session after which the connection counts as dead. */
const graceMs = 2000;

/** A watch of one client across all its connections: keeps its position and records every frame. */
export class RecordingWatcher {
  readonly name: string;
  readonly selection: Selection;
  /** Revision up to which everything was observed; undefined after a session that did not report it. */
  position: number | undefined;
  /** Revision since which the watch has continued without beginning again. */
  unbrokenFrom: number | undefined;
  readonly #options: WatcherOptions;
  readonly #kind: WorkloadKind;
  #sending: ClientRequest | undefined;

  constructor(position: number, options: WatcherOptions) {
    this.position = position;
    this.name = options.name;
    this.selection = options.selection;
    this.#options = options;
    this.#kind = kindNamed(options.selection.kind);
  }

  /** Breaks the running session. */
  interrupt(): void {
    this.#sending?.destroy(new Error('interrupted'));
  }

  /** Runs one session to its end. */
  async session(plan: SessionPlan): Promise<WatchClosed['why']> {
    const { recorder } = this.#options;
    const resumed = plan.from === undefined && this.position !== undefined;
    const from: WatchOpened['from'] =
      plan.from ?? (this.position === undefined ? { state: 'fresh' } : { after: this.position });
    const session = recorder.open({ watch: this.name, server: plan.server, selection: this.selection, from, resumed });
    this.position = 'after' in from ? from.after : undefined;
    if (!resumed) this.unbrokenFrom = undefined;
    else this.unbrokenFrom ??= this.position;
    const [why, detail] = await this.#run(session, plan, from);
    recorder.close(session, why, detail);
    return why;
  }

  #run(session: number, plan: SessionPlan, from: WatchOpened['from']): Promise<[WatchClosed['why'], string?]> {
    const parameters: Record<string, string> = {
      watch: '1',
      allowWatchBookmarks: 'true',
      timeoutSeconds: String(plan.timeoutSeconds),
    };
    if ('after' in from) parameters['resourceVersion'] = String(from.after);
    else {
      if (from.state === 'any') parameters['resourceVersion'] = '0';
      if (plan.sendInitialEvents === true) {
        parameters['sendInitialEvents'] = 'true';
        parameters['resourceVersionMatch'] = 'NotOlderThan';
      }
    }
    const url = new URL(collectionPath(this.selection, parameters), plan.server);
    return new Promise((resolve) => {
      const sending = request(url, { agent: this.#options.agent });
      this.#sending = sending;
      const timer = setTimeout(() => sending.destroy(new Error('silence')), plan.timeoutSeconds * 1000 + graceMs);
      const end = (why: WatchClosed['why'], detail?: string) => {
        clearTimeout(timer);
        this.#sending = undefined;
        sending.destroy();
        resolve(detail === undefined ? [why] : [why, detail]);
      };
      sending.on('error', (error: NodeJS.ErrnoException) => end('cut', error.code ?? error.message));
      sending.on('response', (response) => {
        if (response.statusCode !== 200) {
          response.resume();
          end(response.statusCode === 410 ? 'gone' : 'refused', String(response.statusCode));
        } else this.#read(session, response, end);
      });
      sending.end();
    });
  }

  #read(session: number, response: IncomingMessage, end: (why: WatchClosed['why'], detail?: string) => void): void {
    let rest: Buffer = Buffer.alloc(0);
    response.on('data', (chunk: Buffer) => {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let begin = 0;
      for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, begin)) {
        const frame = JSON.parse(bytes.toString('utf8', begin, at)) as Frame;
        begin = at + 1;
        if (frame.type !== 'ERROR') this.#frame(session, frame);
        else end(frame.object.code === 410 ? 'gone' : 'refused', JSON.stringify(frame.object));
      }
      rest = bytes.subarray(begin);
    });
    response.on('end', () => end(response.complete ? 'ended' : 'cut'));
    response.on('error', (error: NodeJS.ErrnoException) => end('cut', error.code ?? error.message));
    response.on('close', () => end('cut', 'closed'));
  }

  #frame(session: number, { type, object }: Frame): void {
    const { recorder } = this.#options;
    if (type === 'BOOKMARK') {
      const revision = Number(object.metadata?.resourceVersion);
      const initialEnd = object.metadata?.annotations?.['k8s.io/initial-events-end'] === 'true';
      recorder.bookmark(session, revision, initialEnd);
      this.position = revision;
      return;
    }
    const seen = workloadObject(this.#kind, object);
    if (seen === undefined) return;
    recorder.event(session, type as 'ADDED', seen);
    // The events of an initial state do not set the position of the watch; the bookmark after them does.
    if (this.position !== undefined) this.position = seen.revision;
  }
}
