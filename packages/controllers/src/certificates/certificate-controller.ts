import { isIP } from 'node:net';
import { Informer, keyOf, WorkQueue, type WorkResult } from '@keelson/client';
import { isStatusError, StatusReason, timeMs } from '@keelson/core';
import type { Service } from '@keelson/core/runtime';
import { CertificateSigningRequest, hasCondition, Node, readCertificateRequest } from '@keelson/kinds';
import type { ControllerOptions } from '../controller-options.ts';
import type { CertificateSigner } from './certificate-signer.ts';
import { isOwnSigner, nodeClientSigner, nodePrefix, nodeServingSigner, signerProblem } from './signer-rules.ts';

export interface CertificateControllerOptions extends ControllerOptions {
  readonly signer: CertificateSigner;
}

const yearMs = 365 * 86_400_000;

/**
 * Processes certificate signing requests: approves those of nodes, issues approved ones for the signers of this server,
 * and removes old ones. Each step is one write with the resourceVersion as a precondition.
 */
export class CertificateController implements Service {
  readonly name = 'certificatesigningrequest-signing-controller';
  readonly #options: CertificateControllerOptions;
  readonly #informer: Informer<CertificateSigningRequest, string>;
  readonly #queue: WorkQueue;

  constructor(options: CertificateControllerOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({ ...options, name: this.name, workers: 4, work: (name) => this.#advance(name) });
    const consider = (name: string) => this.#queue.add(name);
    this.#informer = new Informer({
      ...options,
      client: options.client.resource(CertificateSigningRequest),
      keep: keyOf,
      handlers: { added: consider, updated: consider },
    });
  }

  start(): Promise<void> {
    return this.#informer.start();
  }

  async stop(): Promise<void> {
    await this.#informer.stop();
    await this.#queue.stop();
  }

  async #advance(name: string): Promise<WorkResult> {
    const { client, clock } = this.#options;
    const requests = client.resource(CertificateSigningRequest);
    const request = await requests.get(name).catch(missingIsUndefined);
    if (request === undefined || request.metadata?.deletionTimestamp) return undefined;
    const leftMs = requestEndsAt(request, clock.now()) - clock.now();
    if (leftMs <= 0) {
      const { uid = '', resourceVersion = '' } = request.metadata ?? {};
      await requests.delete(name, { preconditions: { uid, resourceVersion } }).catch(missingIsUndefined);
      return undefined;
    }
    const decided = await this.#decide(name, request);
    await this.#issue(name, request);
    return { againAfterMs: decided ? leftMs : Math.min(leftMs, addressesPollMs) };
  }

  /** False when the node of a serving certificate has not reported the requested addresses yet. */
  async #decide(name: string, request: CertificateSigningRequest): Promise<boolean> {
    if (isSettled(request) || hasCondition(request, 'Approved')) return true;
    const node = servingNode(request);
    const addresses = node === undefined ? [] : await this.#addressesOf(node);
    const message = node === undefined ? approvalReason(request) : servingApproval(request, node, addresses);
    if (message === undefined) return node === undefined;
    // The informer reports the change, and the certificate is issued then.
    await this.#write(name, 'approval', withCondition(request, { type: 'Approved', reason: 'AutoApproved', message }));
    return true;
  }

  async #addressesOf(name: string): Promise<readonly string[]> {
    const node = await this.#options.client.resource(Node).get(name).catch(missingIsUndefined);
    return (node?.status?.addresses ?? []).map(({ address }) => address);
  }

  async #issue(name: string, request: CertificateSigningRequest): Promise<void> {
    const { spec, status } = request;
    if (
      isSettled(request) ||
      !hasCondition(request, 'Approved') ||
      status?.certificate ||
      !isOwnSigner(spec.signerName)
    )
      return;
    const asked = readCertificateRequest(Buffer.from(spec.request, 'base64').toString('latin1'));
    const usages = spec.usages ?? [];
    const message = signerProblem(spec.signerName, asked, usages);
    if (message !== undefined) {
      const failed = withCondition(request, { type: 'Failed', reason: 'SignerValidationFailure', message });
      return this.#write(name, 'status', failed);
    }
    const lifetimeMs = Math.min((spec.expirationSeconds ?? Number.POSITIVE_INFINITY) * 1000, yearMs);
    const pem = await this.#options.signer({ ...asked, usages, lifetimeMs });
    const certificate = Buffer.from(pem, 'utf8').toString('base64');
    return this.#write(name, 'status', { ...request, status: { ...status, certificate } });
  }

  async #write(name: string, subresource: 'approval' | 'status', request: CertificateSigningRequest): Promise<void> {
    await this.#options.client.resource(CertificateSigningRequest).updateSubresource(name, subresource, request);
    this.#options.logger.info('certificate signing request processed', {
      component: this.name,
      request: name,
      signer: request.spec.signerName,
      requester: request.spec.username,
      outcome: request.status?.certificate ? 'Issued' : request.status?.conditions?.at(-1)?.type,
    });
  }
}

function isSettled(request: CertificateSigningRequest): boolean {
  return hasCondition(request, 'Denied') || hasCondition(request, 'Failed');
}

function withCondition(
  request: CertificateSigningRequest,
  condition: { readonly type: string; readonly reason: string; readonly message: string },
): CertificateSigningRequest {
  const conditions = [...(request.status?.conditions ?? []), { ...condition, status: 'True' }];
  return { ...request, status: { ...request.status, conditions } };
}

function missingIsUndefined(error: unknown): undefined {
  if (!isStatusError(error, StatusReason.NotFound)) throw error;
}

const bootstrappersGroup = 'system:bootstrappers';
const nodesGroup = 'system:nodes';

/**
 * The reason for approving a request automatically, or undefined. It must be for the client certificate of a node, and
 * come from the bootstrap credential or from that node itself, which renews its certificate.
 */
export function approvalReason({ spec }: CertificateSigningRequest): string | undefined {
  if (spec.signerName !== nodeClientSigner) return undefined;
  const request = readCertificateRequest(Buffer.from(spec.request, 'base64').toString('latin1'));
  if (signerProblem(nodeClientSigner, request, spec.usages ?? []) !== undefined) return undefined;
  const groups = spec.groups ?? [];
  if (groups.includes(nodesGroup) && spec.username === request.subject.commonName) {
    return 'The node renews its own client certificate.';
  }
  if (groups.includes(bootstrappersGroup)) return 'A node joins with the bootstrap credential.';
  return undefined;
}

/** Interval at which the addresses of a node are read while it has not reported those of its request. */
const addressesPollMs = 5_000;

/** The node that requests a serving certificate for itself; undefined for other requests. */
function servingNode({ spec }: CertificateSigningRequest): string | undefined {
  const { username = '', groups = [] } = spec;
  if (spec.signerName !== nodeServingSigner || !groups.includes(nodesGroup) || !username.startsWith(nodePrefix))
    return undefined;
  return username.slice(nodePrefix.length);
}

/**
 * The reason for approving the request of a node for its serving certificate, or undefined. It must contain no names or
 * addresses except those that the node has reported: with others the node could pretend to be another server.
 */
function servingApproval(
  { spec }: CertificateSigningRequest,
  node: string,
  addresses: readonly string[],
): string | undefined {
  const request = readCertificateRequest(Buffer.from(spec.request, 'base64').toString('latin1'));
  if (signerProblem(nodeServingSigner, request, spec.usages ?? []) !== undefined) return undefined;
  if (request.subject.commonName !== nodePrefix + node) return undefined;
  const { dns, ips } = request.names;
  const known = new Set(addresses.map(canonical));
  const reported = [...dns, ...ips].every((name) => known.has(canonical(name)));
  return reported ? 'The node requests a serving certificate for the addresses that it has reported.' : undefined;
}

/** An IPv6 address in its shortest form; other names in lower case. */
function canonical(name: string): string {
  return isIP(name) === 6 ? new URL(`http://[${name}]`).hostname : name.toLowerCase();
}

const hourMs = 3_600_000;
/** Time for which a decided or failed request is kept. */
const settledMs = hourMs;
/** Time for which an undecided request is kept. */
const pendingMs = 24 * hourMs;

const settling = ['Approved', 'Denied', 'Failed'];

/** The time of a request's removal in epoch milliseconds, with the periods of Kubernetes. */
export function requestEndsAt({ metadata, status }: CertificateSigningRequest, nowMs: number): number {
  const at = (time: string | null | undefined) => (time ? timeMs(time) : undefined) ?? nowMs;
  const settled = (status?.conditions ?? []).filter(({ type }) => settling.includes(type));
  if (settled.length === 0) return at(metadata?.creationTimestamp) + pendingMs;
  return Math.min(...settled.map(({ lastUpdateTime }) => at(lastUpdateTime))) + settledMs;
}
