import type { Bandwidth, NetworkRequest, PodSandboxConfig } from '@keelson/container-runtime';
import { QuantityError, quantityValue } from '@keelson/core';
import { NetworkError } from './network-error.ts';

const ingressAnnotation = 'kubernetes.io/ingress-bandwidth';
const egressAnnotation = 'kubernetes.io/egress-bandwidth';
/** Range of bandwidth annotations in bits per second, the same as in Kubernetes. */
const minRate = 1_000;
const maxRate = 1_000_000_000_000_000;

/**
 * The request to connect a sandbox.
 *
 * @throws NetworkError `InvalidArgument` for an invalid bandwidth annotation
 */
export function networkRequest(sandboxId: string, netnsPath: string, config: PodSandboxConfig): NetworkRequest {
  const { metadata, portMappings, dns, annotations = {} } = config;
  const bandwidth = bandwidthOf(annotations);
  return {
    sandboxId,
    netnsPath,
    namespace: metadata.namespace,
    name: metadata.name,
    uid: metadata.uid,
    ...(portMappings && { portMappings }),
    ...(dns && { dns }),
    ...(bandwidth && { bandwidth }),
  };
}

function bandwidthOf(annotations: Readonly<Record<string, string>>): Bandwidth | undefined {
  const ingressRate = rate(annotations, ingressAnnotation);
  const egressRate = rate(annotations, egressAnnotation);
  if (ingressRate === undefined && egressRate === undefined) return undefined;
  return { ...(ingressRate !== undefined && { ingressRate }), ...(egressRate !== undefined && { egressRate }) };
}

function rate(annotations: Readonly<Record<string, string>>, key: string): number | undefined {
  const text = annotations[key];
  if (text === undefined) return undefined;
  let bits: number;
  try {
    bits = Number(quantityValue(text));
  } catch (error) {
    if (!(error instanceof QuantityError)) throw error;
    throw new NetworkError('InvalidArgument', `annotation ${key}: ${JSON.stringify(text)} is not a quantity`, {
      cause: error,
    });
  }
  if (bits >= minRate && bits <= maxRate) return bits;
  throw new NetworkError('InvalidArgument', `annotation ${key}: ${text} is not between 1k and 1P`);
}
