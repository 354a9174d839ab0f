import type { coreV1, Node, Pod } from '@keelson/kinds';
import { nodeOf, podOf } from './test-cluster.ts';

/** Pseudo-random numbers from 0 to below 1, repeatable by seed. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Random nodes and pods out of few values, so that rules often meet. */
export class RandomCluster {
  readonly #random: () => number;
  #serial = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  chance(probability: number): boolean {
    return this.#random() < probability;
  }

  pick<T>(...values: readonly T[]): T {
    return values[Math.floor(this.#random() * values.length)] as T;
  }

  node(name: string): Node {
    return nodeOf(name, {
      labels: {
        ...(this.chance(0.85) && { zone: this.pick('a', 'b', 'c') }),
        ...(this.chance(0.5) && { disk: this.pick('fast', 'slow') }),
      },
      spec: {
        ...(this.chance(0.1) && { unschedulable: true }),
        ...(this.chance(0.2) && {
          taints: [
            {
              key: this.pick('k', 'l'),
              value: this.pick('x', 'y'),
              effect: this.pick('NoSchedule', 'PreferNoSchedule'),
            },
          ],
        }),
      },
      allocatable: { cpu: this.pick('500m', '1', '2'), pods: this.pick('2', '4', '8') },
    });
  }

  pod(): Pod {
    this.#serial += 1;
    const pod = podOf(`p${this.#serial}`, {
      namespace: this.pick('default', 'other'),
      labels: { app: this.pick('web', 'db'), tier: this.pick('1', '2') },
      requests: { cpu: this.pick('0m', '100m', '300m', '700m') },
      ...(this.chance(0.15) && {
        ports: [
          {
            containerPort: 80,
            hostPort: this.pick(80, 81),
            protocol: this.pick('TCP', 'UDP'),
            ...(this.chance(0.5) && { hostIP: this.pick('0.0.0.0', '10.0.0.1', '10.0.0.2') }),
          },
        ],
      }),
      spec: {
        ...(this.chance(0.3) && {
          tolerations: [{ operator: 'Exists', ...(this.chance(0.5) && { key: this.pick('k', 'l') }) }],
        }),
        ...(this.chance(0.15) && { nodeSelector: { disk: this.pick('fast', 'slow') } }),
        ...(this.chance(0.5) && { affinity: this.#affinity() }),
        ...(this.chance(0.35) && {
          topologySpreadConstraints: [this.#spread('zone'), this.#spread(hostname)].slice(0, this.pick(1, 2)),
        }),
      },
    });
    if (pod.metadata) pod.metadata.uid = `uid-${this.#serial}`;
    return pod;
  }

  #affinity(): coreV1.Affinity {
    const terms = () => [this.#term(), ...(this.chance(0.2) ? [this.#term()] : [])];
    return {
      ...(this.chance(0.2) && {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              {
                matchExpressions: [
                  {
                    key: this.pick('zone', 'disk'),
                    operator: this.pick('In', 'NotIn'),
                    values: [this.pick('a', 'b', 'fast')],
                  },
                ],
              },
            ],
          },
        },
      }),
      ...(this.chance(0.4) && { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms() } }),
      ...(this.chance(0.4) && { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms() } }),
    };
  }

  #term(): coreV1.PodAffinityTerm {
    return {
      topologyKey: this.pick('zone', hostname, 'disk'),
      labelSelector: { matchLabels: this.pick({ app: 'web' }, { app: 'db' }, { tier: '1' }) as Record<string, string> },
      ...(this.chance(0.2) && { namespaces: [this.pick('default', 'other')] }),
      ...(this.chance(0.2) && { namespaceSelector: this.pick({}, { matchLabels: { team: 'a' } }) }),
    };
  }

  #spread(topologyKey: string): coreV1.TopologySpreadConstraint {
    return {
      maxSkew: this.pick(1, 2),
      topologyKey,
      whenUnsatisfiable: this.pick('DoNotSchedule', 'DoNotSchedule', 'ScheduleAnyway'),
      labelSelector: { matchLabels: { app: this.pick('web', 'db') } },
      ...(this.chance(0.2) && { minDomains: this.pick(2, 4) }),
      ...(this.chance(0.2) && { nodeAffinityPolicy: 'Ignore' }),
      ...(this.chance(0.3) && { nodeTaintsPolicy: 'Honor' }),
    };
  }
}

const hostname = 'kubernetes.io/hostname';
