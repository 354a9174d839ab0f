import { once } from 'node:events';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { eventually } from '@keelson/testing';
import { type KeelsonProcess, startKeelson } from '../keelson-process.ts';
import { manifestsOf } from '../manifests.ts';
import { readKubeconfig } from '../read-kubeconfig.ts';
import { type HostileTarget, targetOf } from './hostile-client.ts';
import type { ProcessReport } from './process-probe.ts';
import { abusedNamespace, patchedName } from './request-classes.ts';

/** Objects in this namespace must stay as they are, because no hostile request names it. */
const keptNamespace = 'kept';
/** Growth of memory over everything a class did. Caches and histories are bounded well below this. */
const memoryMargin = 48 * 2 ** 20;
/** Descriptors beyond those that were open before a class: connections of this client that the server keeps. */
const descriptorMargin = 4;
/**
 * Generous, because test files share the processors; a request that blocks the event loop by superlinear work takes
 * seconds.
 */
const longestTurnMs = 2000;

/** State of a server between two classes of requests. */
export interface Inspection {
  readonly report: ProcessReport;
  readonly descriptors: number;
  readonly stored: string;
  /** Length of what the server has logged. */
  readonly logged: number;
}

/** A `keelson serve` with TLS that is inspected from inside and outside between classes of hostile requests. */
export class AbusedServer {
  readonly target: HostileTarget;
  readonly #process: KeelsonProcess;
  readonly #probeFile: string;
  readonly #agent: Agent;

  private constructor(process: KeelsonProcess, target: HostileTarget, probeFile: string) {
    this.#process = process;
    this.target = target;
    this.#probeFile = probeFile;
    const { ca, cert, key } = target.tls ?? { ca: '' };
    this.#agent = new Agent({ ca, ...(cert && { cert }), ...(key && { key }) });
  }

  static async start(data: string): Promise<AbusedServer> {
    const probeFile = join(data, 'probe.json');
    const config = join(data, 'keelson.json');
    // The window of recent changes is part of the memory that is compared.
    // Sessions that hostile frames have left behind end within these times, which are short enough to wait for.
    const connectionLimits = { handshake: '3s', idle: '10s', linger: '3s', ping: '3s' };
    await writeFile(config, JSON.stringify({ watchWindow: { maxEvents: 100 }, connectionLimits }));
    const probe = new URL('./process-probe.js', import.meta.url).href;
    const process = await startKeelson(data, ['--config', config, '--log-level', 'error'], 'serve', {
      env: { NODE_OPTIONS: `--import=${probe}`, PROCESS_PROBE_FILE: probeFile },
    });
    const server = new AbusedServer(
      process,
      targetOf(process.url, await readKubeconfig(process.kubeconfig)),
      probeFile,
    );
    await server.#createObjects();
    return server;
  }

  async stop(): Promise<number | null> {
    this.#agent.destroy();
    return this.#process.stop();
  }

  /** Removes what hostile requests created, so that it is not taken for lost memory. */
  async clear(): Promise<void> {
    const resources = Object.keys(manifestsOf('any')).map((name) => name.split('.')[0] ?? name);
    for (const resource of new Set([...resources, 'pods'])) {
      const path = `${pathOf(resource)}/namespaces/${abusedNamespace}/${resource}`;
      const { items } = JSON.parse((await this.#call('GET', path)).body) as { items: { metadata: { name: string } }[] };
      for (const { metadata } of items) {
        const object = `${path}/${metadata.name}`;
        const patch = '{"metadata":{"finalizers":null}}';
        if (metadata.name === patchedName) continue;
        await this.#call('DELETE', `${object}?gracePeriodSeconds=0`);
        await this.#call('PATCH', object, patch, 'application/merge-patch+json');
      }
    }
  }

  /** Waits until the server is at rest, and returns what it holds. */
  async inspect(): Promise<Inspection> {
    // The request for the metrics is in flight itself.
    await eventually(async () => (await this.#inFlight()) === 1, 60_000);
    await rm(this.#probeFile, { force: true });
    process.kill(this.#process.pid, 'SIGUSR2');
    const report = await eventually(
      async () => JSON.parse(await readFile(this.#probeFile, 'utf8')) as ProcessReport,
      30_000,
    );
    const descriptors = (await readdir(`/proc/${this.#process.pid}/fd`)).length;
    return { report, descriptors, stored: await this.#stored(), logged: this.#process.output().stderr.length };
  }

  /**
   * Differences since an inspection that no request may cause, one sentence each. Connections may need a while to end.
   */
  async violations(before: Inspection): Promise<{ readonly after: Inspection; readonly found: readonly string[] }> {
    let after = await this.inspect();
    const deadline = performance.now() + 30_000;
    while (after.descriptors > before.descriptors + descriptorMargin && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      after = { ...(await this.inspect()), report: after.report };
    }
    const { report } = after;
    const used = ({ heapBytes, externalBytes }: ProcessReport) => heapBytes + externalBytes;
    const growth = used(report) - used(before.report);
    const found = [
      ...(growth > memoryMargin ? [`memory grew by ${(growth / 2 ** 20).toFixed(0)} MiB`] : []),
      ...(report.longestDelayMs > longestTurnMs
        ? [`the event loop was blocked for ${report.longestDelayMs.toFixed(0)} ms`]
        : []),
      ...(report.prototypeNames.length > 0 ? [`Object.prototype has ${report.prototypeNames.join(', ')}`] : []),
      ...(after.descriptors > before.descriptors + descriptorMargin
        ? [`${after.descriptors} descriptors are open, ${before.descriptors} were before`]
        : []),
      ...(after.stored === before.stored ? [] : ['objects changed that no request named']),
      ...(after.logged === before.logged ? [] : [`the server logged errors: ${this.#loggedSince(before)}`]),
    ];
    return { after, found };
  }

  #loggedSince({ logged }: Inspection): string {
    return this.#process.output().stderr.slice(logged, logged + 2000);
  }

  async #inFlight(): Promise<number> {
    const { body } = await this.#call('GET', '/metrics');
    const levels = body.matchAll(
      /^(?:apiserver_current_inflight_requests\{[^}]*\}|keelson_http_(?:watches|connects)) (\d+)$/gm,
    );
    return [...levels].reduce((sum, [, level]) => sum + Number(level), 0);
  }

  async #stored(): Promise<string> {
    const resources = ['configmaps', 'secrets', 'services'];
    const lists = resources.map((resource) => this.#call('GET', `/api/v1/namespaces/${keptNamespace}/${resource}`));
    const bodies = (await Promise.all(lists)).map(({ body }) => JSON.parse(body) as { items: unknown });
    return JSON.stringify(bodies.map(({ items }) => items));
  }

  async #createObjects(): Promise<void> {
    for (const name of [keptNamespace, abusedNamespace])
      await this.#create('/api/v1/namespaces', { metadata: { name } });
    const { configmaps, secrets, services } = manifestsOf('kept', keptNamespace);
    for (const [resource, object] of Object.entries({ configmaps, secrets, services }))
      await this.#create(`/api/v1/namespaces/${keptNamespace}/${resource}`, object);
    const metadata = { name: patchedName, labels: { app: 'a' } };
    await this.#create(`/api/v1/namespaces/${abusedNamespace}/configmaps`, { metadata, data: { key: 'value' } });
    const template = {
      metadata: { labels: { app: 'a' } },
      spec: { containers: [{ name: 'main', image: 'main:1.0' }] },
    };
    const spec = { selector: { matchLabels: { app: 'a' } }, template };
    await this.#create(`/apis/apps/v1/namespaces/${abusedNamespace}/deployments`, { metadata, spec });
  }

  async #create(path: string, object: unknown): Promise<void> {
    const { status, body } = await this.#call('POST', path, JSON.stringify(object));
    if (status !== 201) throw new Error(`POST ${path}: ${status} ${body}`);
  }

  async #call(
    method: string,
    path: string,
    body?: string,
    type = 'application/json',
  ): Promise<{ readonly status: number; readonly body: string }> {
    const { host, port } = this.target;
    const headers = body === undefined ? {} : { 'content-type': type, 'content-length': Buffer.byteLength(body) };
    const call = request({ host, port, method, path, agent: this.#agent, headers });
    call.end(body);
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    return { status: response.statusCode ?? 0, body: await text(response) };
  }
}

function pathOf(resource: string): string {
  return ['daemonsets', 'deployments', 'replicasets'].includes(resource)
    ? '/apis/apps/v1'
    : resource === 'ingresses'
      ? '/apis/extensions/v1beta1'
      : '/api/v1';
}
