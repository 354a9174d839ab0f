import { isIP } from 'node:net';
import { readCertificateRequest } from '@keelson/certificates';
import { missingIsUndefined } from '@keelson/client';
import { type ControllerDefinition, type ReconcileRun, relatedKind } from '@keelson/controller-kit';
import { timeMs } from '@keelson/core';
import { CertificateSigningRequest, hasCondition, Node, SubjectAccessReview } from '@keelson/kinds';
import type { CertificateSigner } from './certificate-signer.ts';
import { isOwnSigner, nodeClientSigner, nodePrefix, nodeServingSigner, signerProblem } from './signer-rules.ts';

const yearMs = 365 * 86_400_000;
/** Pause before the permission of a requester is checked again, because a change of roles leads to no run. */
const recheckMs = 60_000;

/** Index of the requests for serving certificates by node. */
const byServingNode = (request: CertificateSigningRequest) => {
  const node = servingNode(request);
  return node === undefined ? [] : [node];
};

/**
 * Processes certificate signing requests: approves those of nodes, issues approved ones for the signers of this server,
 * and removes old ones. Each step is one write with the resourceVersion as a precondition.
 */
export function certificateController(signer: CertificateSigner): ControllerDefinition<CertificateSigningRequest> {
  return {
    name: 'certificatesigningrequest-signing-controller',
    kind: CertificateSigningRequest,
    // A request is approved when its node has reported the requested addresses.
    related: [
      relatedKind(Node, (node, _before, read) =>
        read(CertificateSigningRequest)
          .by(byServingNode, node.metadata?.name ?? '')
          .map(({ metadata }) => metadata?.name ?? ''),
      ),
    ],
    workers: 4,
    reconcile: async (request, run) => {
      if (request.metadata?.deletionTimestamp !== undefined) return undefined;
      const leftMs = requestEndsAt(request, run.clock.now()) - run.clock.now();
      if (leftMs <= 0) {
        const { uid = '', resourceVersion = '' } = request.metadata ?? {};
        await run.client
          .resource(CertificateSigningRequest)
          .delete(run.key, { preconditions: { uid, resourceVersion } })
          .catch(missingIsUndefined);
        return undefined;
      }
      const refused = await decide(request, run);
      await issue(request, run, signer);
      return { againAfterMs: refused ? Math.min(leftMs, recheckMs) : leftMs };
    },
  };
}

/**
 * Approves a request of a node.
 *
 * @returns true when it is one for a client certificate that the requester may not have at present
 */
async function decide(request: CertificateSigningRequest, run: ReconcileRun): Promise<boolean> {
  if (isSettled(request) || hasCondition(request, 'Approved')) return false;
  const node = servingNode(request);
  const ways = waysToApprove(request);
  const addresses = node === undefined ? [] : (run.read(Node).get(node)?.status?.addresses ?? []);
  const message =
    node === undefined
      ? await permittedWay(request, ways, run)
      : servingApproval(
          request,
          node,
          addresses.map(({ address }) => address),
        );
  if (message === undefined) return ways.length > 0;
  // The update triggers another run, which issues the certificate.
  await write(run, 'approval', addCondition(request, { type: 'Approved', reason: 'AutoApproved', message }));
  return false;
}

async function issue(request: CertificateSigningRequest, run: ReconcileRun, signer: CertificateSigner): Promise<void> {
  const { spec, status } = request;
  if (isSettled(request) || !hasCondition(request, 'Approved') || status?.certificate || !isOwnSigner(spec.signerName))
    return;
  const asked = readCertificateRequest(Buffer.from(spec.request, 'base64').toString('latin1'));
  const usages = spec.usages ?? [];
  const message = signerProblem(spec.signerName, asked, usages);
  if (message !== undefined) {
    const failed = addCondition(request, { type: 'Failed', reason: 'SignerValidationFailure', message });
    return write(run, 'status', failed);
  }
  const lifetimeMs = Math.min((spec.expirationSeconds ?? Number.POSITIVE_INFINITY) * 1000, yearMs);
  const pem = await signer({ ...asked, usages, lifetimeMs });
  const certificate = Buffer.from(pem, 'utf8').toString('base64');
  return write(run, 'status', { ...request, status: { ...status, certificate } });
}

async function write(
  { client, key, logger }: ReconcileRun,
  subresource: 'approval' | 'status',
  request: CertificateSigningRequest,
): Promise<void> {
  await client.resource(CertificateSigningRequest).updateSubresource(key, subresource, request);
  logger.info('certificate signing request processed', {
    component: 'certificate-controller',
    request: key,
    signer: request.spec.signerName,
    requester: request.spec.username,
    outcome: request.status?.certificate ? 'Issued' : request.status?.conditions?.at(-1)?.type,
  });
}

function isSettled(request: CertificateSigningRequest): boolean {
  return hasCondition(request, 'Denied') || hasCondition(request, 'Failed');
}

function addCondition(
  request: CertificateSigningRequest,
  condition: { readonly type: string; readonly reason: string; readonly message: string },
): CertificateSigningRequest {
  const conditions = [...(request.status?.conditions ?? []), { ...condition, status: 'True' }];
  return { ...request, status: { ...request.status, conditions } };
}

const nodesGroup = 'system:nodes';

/** A subresource whose `create` permits the approval of a request, and the message of the approval. */
interface WayToApprove {
  readonly subresource: string;
  readonly message: string;
}

const renewal: WayToApprove = {
  subresource: 'selfnodeclient',
  message: 'Auto approving self kubelet client certificate after SubjectAccessReview.',
};
const joining: WayToApprove = {
  subresource: 'nodeclient',
  message: 'Auto approving kubelet client certificate after SubjectAccessReview.',
};

/** The permissions of which one suffices for a client certificate of a node; none for other requests. */
function waysToApprove({ spec }: CertificateSigningRequest): readonly WayToApprove[] {
  if (spec.signerName !== nodeClientSigner) return [];
  const request = readCertificateRequest(Buffer.from(spec.request, 'base64').toString('latin1'));
  if (signerProblem(nodeClientSigner, request, spec.usages ?? []) !== undefined) return [];
  return spec.username === request.subject.commonName ? [renewal, joining] : [joining];
}

/** The message of the first way that the requester may take. */
async function permittedWay(
  { spec }: CertificateSigningRequest,
  ways: readonly WayToApprove[],
  { client }: ReconcileRun,
): Promise<string | undefined> {
  const { username, uid, groups, extra } = spec;
  for (const { subresource, message } of ways) {
    const { status } = await client.resource(SubjectAccessReview).create({
      spec: {
        ...(username ? { user: username } : {}),
        ...(uid ? { uid } : {}),
        ...(groups ? { groups } : {}),
        ...(extra ? { extra } : {}),
        resourceAttributes: {
          ...{ group: 'certificates.k8s.io', version: '*', resource: 'certificatesigningrequests' },
          ...{ subresource, verb: 'create' },
        },
      },
    } as SubjectAccessReview);
    if (status?.allowed === true) return message;
  }
  return undefined;
}

/** The node that requests a serving certificate for itself; undefined for other requests. */
function servingNode({ spec }: CertificateSigningRequest): string | undefined {
  const { username = '', groups = [] } = spec;
  if (spec.signerName !== nodeServingSigner || !groups.includes(nodesGroup) || !username.startsWith(nodePrefix))
    return undefined;
  return username.slice(nodePrefix.length);
}

/**
 * The reason for approving the request of a node for its serving certificate, or undefined. The request may contain
 * only names and addresses that the node has reported, because the node could otherwise impersonate another server.
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
