import { readFile } from 'node:fs/promises';
import { parseCertificates } from '@keelson/access';
import type { KeyPair } from '@keelson/certificates';
import { type ResourceClient, type StatusError, statusErrors } from '@keelson/core';
import { printableText, UsageError } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import type { AgentDialOptions, NodeDialer, Upstream, UpstreamTls } from '@keelson/http-koa';
import type { Node } from '@keelson/kinds';
import { type AddressChoice, chooseAddress, type Resolve, systemResolve } from './node-address.ts';

export interface ApiNodeDialerOptions {
  readonly nodes: Pick<ResourceClient<Node>, 'get'>;
  /** The current client certificate of the server for agents. */
  readonly identity: () => KeyPair | undefined;
  /** Authorities of the agents' certificates, PEM; undefined: the certificates are not verified. */
  readonly authority: () => string | undefined;
  /** Ports at 127.0.0.1 of agents in this process, by node name. */
  readonly local: ReadonlyMap<string, number> | undefined;
  readonly clock: Clock;
  readonly resolve?: Resolve;
}

/** Timeout for resolving names. The timeouts of the system's resolver are much longer. */
const resolveMs = 5_000;

/** Finds nodes by the addresses in their status, and the agents of this process by their local ports. */
export class ApiNodeDialer implements NodeDialer {
  readonly #options: ApiNodeDialerOptions;

  constructor(options: ApiNodeDialerOptions) {
    this.#options = options;
  }

  async agent(name: string, { anyCertificate, proxied, signal }: AgentDialOptions): Promise<Upstream> {
    const { local } = this.#options;
    const localPort = local?.get(name);
    // The certificate of an agent in this process is not verified: its connections do not leave the machine.
    if (localPort !== undefined) return { host: '127.0.0.1', port: localPort, tls: this.#identity() };
    const node = await this.#options.nodes.get(name, { signal });
    const port = node.status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0;
    if (port === 0) throw statusErrors.serviceUnavailable(`the agent of node ${JSON.stringify(name)} serves no port`);
    const { ip, name: servername } = await this.#address(node, name, proxied);
    const authority = this.#options.authority();
    const believed: UpstreamTls =
      authority === undefined || anyCertificate
        ? {}
        : { ca: authority, ...(servername === undefined ? {} : { servername }) };
    return { host: ip, port, tls: { ...this.#identity(), ...believed } };
  }

  async address(name: string, signal: AbortSignal): Promise<string> {
    return (await this.#address(await this.#options.nodes.get(name, { signal }), name, true)).ip;
  }

  #identity(): UpstreamTls {
    const identity = this.#options.identity();
    return identity === undefined ? {} : { cert: identity.certificate, key: identity.key };
  }

  async #address(node: Node, name: string, proxied: boolean) {
    const { resolve = systemResolve, clock } = this.#options;
    let cancel = () => {};
    const late = new Promise<AddressChoice>((done) => {
      cancel = clock.after(resolveMs, () => done({ tried: [`its names do not resolve within ${resolveMs / 1000} s`] }));
    });
    const choice = await Promise.race([chooseAddress(node.status?.addresses ?? [], { proxied, resolve }), late]);
    cancel();
    if ('found' in choice) return choice.found;
    throw unreachable(name, choice.tried);
  }
}

function unreachable(name: string, tried: readonly string[]): StatusError {
  const why = tried.length === 0 ? 'it has reported no address' : printableText(tried.join(', '));
  return statusErrors.serviceUnavailable(`node ${JSON.stringify(name)} cannot be reached: ${why}`);
}

/** Reads certificates, PEM. @throws UsageError that names the option */
export async function readCertificates(option: string, path: string): Promise<string> {
  let content: Buffer;
  try {
    content = await readFile(path);
  } catch (error) {
    throw new UsageError(`${option}: cannot read ${path}: ${(error as Error).message}`);
  }
  try {
    parseCertificates(content);
  } catch (error) {
    throw new UsageError(`${option}: ${path}: ${(error as Error).message}`);
  }
  return content.toString('utf8');
}
