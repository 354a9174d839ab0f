import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createHttpClient, type HttpApiClient, type HttpClientOptions } from '@keelson/client';
import { isStatusError, type KubeObject, type ResourceClient } from '@keelson/core';
import { UsageError } from '@keelson/core/internal';
import type { ConnectionTarget } from './connection.ts';

/** Name, address and credentials of a server that is measured. */
export interface SubjectAddress {
  /** Name of the server in the report. */
  readonly name: string;
  readonly access: HttpClientOptions;
  /** Process ID of the server; absent when the benchmark has not started it. */
  readonly pid?: number;
}

/** Label of every object that the benchmark writes. */
const label = 'keelson-bench';

/** A server that is measured. Makes requests for objects of the measured kind, in a namespace of the benchmark. */
export class Subject {
  readonly name: string;
  readonly objects: ResourceClient<KubeObject>;
  readonly target: ConnectionTarget;
  /** Names of the objects that exist during all scenarios. */
  readonly existing: string[] = [];
  readonly #client: HttpApiClient;
  readonly #address: SubjectAddress;
  readonly #path: string;
  readonly #head: string;
  readonly #template: KubeObject;
  readonly #namespace: string | undefined;
  readonly #run: string;
  #last = 0;

  private constructor(address: SubjectAddress, client: HttpApiClient, template: KubeObject, found: FoundResource) {
    this.#run = `${label}-${randomBytes(4).toString('hex')}`;
    this.name = address.name;
    this.#address = address;
    this.#client = client;
    this.#template = template;
    this.#namespace = found.namespaced ? this.#run : undefined;
    const all = client.dynamic(found);
    this.objects = this.#namespace === undefined ? all : all.namespace(this.#namespace);
    const { access } = address;
    const url = new URL(access.server);
    const tls = {
      ...(access.ca === undefined ? {} : { ca: access.ca }),
      ...(access.clientCertificate === undefined ? {} : { cert: access.clientCertificate, key: access.clientKey }),
      ...(access.insecureSkipTlsVerify ? { rejectUnauthorized: false } : {}),
      ...serverName(access.tlsServerName ?? url.hostname),
    };
    const secure = url.protocol === 'https:';
    this.target = {
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: Number(url.port || (secure ? 443 : 80)),
      ...(secure ? { tls } : {}),
    };
    const { group, version, resource } = found;
    const base = url.pathname.replace(/\/$/, '') + (group === '' ? `/api/${version}` : `/apis/${group}/${version}`);
    this.#path = `${base}${this.#namespace === undefined ? '' : `/namespaces/${this.#namespace}`}/${resource}`;
    const token = access.token === undefined ? '' : `Authorization: Bearer ${access.token}\r\n`;
    this.#head = `Host: ${url.host}\r\nUser-Agent: keelson-bench\r\nAccept: application/json\r\n${token}`;
  }

  /** Connects, and creates the namespace. @throws UsageError when the server does not answer or serve the kind */
  static async open(address: SubjectAddress, template: KubeObject): Promise<Subject> {
    const { tokenProvider } = address.access;
    const access = tokenProvider === undefined ? address.access : { ...address.access, token: await tokenProvider() };
    const client = createHttpClient(access);
    try {
      const rows = await client.discover();
      const { apiVersion = '', kind } = template;
      const found = rows.find(
        ({ group, version, ...row }) =>
          row.kind === kind && (group === '' ? version : `${group}/${version}`) === apiVersion,
      );
      if (found === undefined)
        throw new UsageError(
          `${address.name} serves no ${kind} of ${apiVersion}; install the kind there, or use --kinds`,
        );
      const subject = new Subject({ ...address, access }, client, template, found);
      await subject.#createNamespace();
      return subject;
    } catch (error) {
      client.close();
      if (error instanceof UsageError) throw error;
      throw new UsageError(`${address.name} cannot be measured: ${(error as Error).message}`);
    }
  }

  async #createNamespace(): Promise<void> {
    if (this.#namespace === undefined) return;
    const metadata = { name: this.#namespace, labels: { [label]: this.#run } };
    await this.#namespaces().create({ apiVersion: 'v1', kind: 'Namespace', metadata });
  }

  #namespaces(): ResourceClient<KubeObject> {
    return this.#client.dynamic({ group: '', version: 'v1', resource: 'namespaces' });
  }

  nextName(): string {
    this.#last += 1;
    return `${this.#run}-${this.#last}`;
  }

  createRequest(name: string): string {
    const { metadata } = this.#template;
    const body = JSON.stringify({
      ...this.#template,
      metadata: { ...metadata, name, namespace: this.#namespace, labels: { ...metadata?.labels, [label]: this.#run } },
    });
    return this.#request('POST', '', body, 'application/json');
  }

  getRequest(name: string): string {
    return this.#request('GET', `/${name}`);
  }

  listRequest(limit: number): string {
    return this.#request('GET', `?limit=${limit}&labelSelector=${label}%3D${this.#run}`);
  }

  patchRequest(name: string): string {
    this.#last += 1;
    const body = JSON.stringify({ metadata: { annotations: { [label]: String(this.#last) } } });
    return this.#request('PATCH', `/${name}`, body, 'application/merge-patch+json');
  }

  deleteRequest(name: string): string {
    return this.#request('DELETE', `/${name}`);
  }

  /** Label selector of the benchmark's objects, for watches. */
  get selector(): string {
    return `${label}=${this.#run}`;
  }

  /** CPU seconds of the server's process so far; undefined for servers that the benchmark has not started. */
  cpuSeconds(): number | undefined {
    if (this.#address.pid === undefined) return undefined;
    try {
      const fields = readFileSync(`/proc/${this.#address.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
      // Linux reports CPU times to programs in hundredths of a second.
      return (Number(fields[11]) + Number(fields[12])) / 100;
    } catch {
      return undefined;
    }
  }

  /** Deletes the objects and the namespace of the benchmark, and closes the client. */
  async close(): Promise<void> {
    try {
      await this.objects.deleteCollection({ labelSelector: this.selector, gracePeriodSeconds: 0 });
      if (this.#namespace !== undefined) await this.#namespaces().delete(this.#namespace);
    } catch (error) {
      if (!isStatusError(error)) throw error;
    } finally {
      this.#client.close();
    }
  }

  #request(method: string, suffix: string, body = '', type = ''): string {
    const content = body === '' ? '' : `Content-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`;
    return `${method} ${this.#path}${suffix} HTTP/1.1\r\n${this.#head}${content}\r\n${body}`;
  }
}

interface FoundResource {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly namespaced: boolean;
}

/** The server name that the TLS client sends (SNI). Absent for an IP address, which SNI does not permit. */
function serverName(host: string): { readonly servername?: string } {
  return /^[\d.]+$|:/.test(host) ? {} : { servername: host };
}
