import { request as httpRequest, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { NodeDialer } from '@keelson/http-koa';

/** Cumulative use of CPU and the working set, at a time. */
export interface Usage {
  /** Time of the measurement in epoch milliseconds. */
  readonly timeMs: number;
  readonly cpuNanoSeconds: number;
  readonly memoryBytes: number;
}

/** What an agent reports of its node. */
export interface NodeStats {
  readonly usage: Usage | undefined;
  readonly pods: readonly {
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
    readonly containers: readonly { readonly name: string; readonly usage: Usage }[];
  }[];
}

/** Maximum size of an answer. The answer of a node with the maximum number of pods is smaller. */
const maxBytes = 16 * 2 ** 20;

/** Reads the statistics of a node from its agent. @throws Error when the agent does not answer as expected */
export async function readNodeStats(dialer: NodeDialer, name: string, signal: AbortSignal): Promise<NodeStats> {
  const { host, port, tls } = await dialer.agent(name, { anyCertificate: false, proxied: false, signal });
  const options: RequestOptions = { host, port, path: '/stats/summary', signal, agent: false };
  const body = await new Promise<string>((resolve, reject) => {
    const sent =
      tls === undefined
        ? httpRequest(options)
        : httpsRequest({ ...options, ...tls, rejectUnauthorized: tls.ca !== undefined });
    sent.on('error', reject);
    sent.on('response', (answer) => {
      const chunks: Buffer[] = [];
      let length = 0;
      answer.on('data', (chunk: Buffer) => {
        length += chunk.length;
        if (length > maxBytes) sent.destroy(new Error(`the answer of the agent is larger than ${maxBytes} bytes`));
        else chunks.push(chunk);
      });
      answer.on('error', reject);
      answer.on('end', () => {
        if (answer.statusCode === 200) resolve(Buffer.concat(chunks).toString('utf8'));
        else reject(new Error(`the agent answered with ${answer.statusCode}`));
      });
    });
    sent.end();
  });
  return statsOf(JSON.parse(body) as Summary);
}

/** The fields of `/stats/summary` that are read. Agents are not trusted: every field may be absent. */
interface Summary {
  readonly node?: Sample;
  readonly pods?: readonly {
    readonly podRef?: { readonly namespace?: string; readonly name?: string; readonly uid?: string };
    readonly containers?: readonly (Sample & { readonly name?: string })[];
  }[];
}

interface Sample {
  readonly cpu?: { readonly time?: string; readonly usageCoreNanoSeconds?: number };
  readonly memory?: { readonly workingSetBytes?: number };
}

function statsOf({ node, pods = [] }: Summary): NodeStats {
  return {
    usage: node && usageOf(node),
    pods: pods.map(({ podRef = {}, containers = [] }) => ({
      namespace: String(podRef.namespace),
      name: String(podRef.name),
      uid: String(podRef.uid),
      containers: containers.flatMap((container) => {
        const usage = usageOf(container);
        return usage === undefined ? [] : [{ name: String(container.name), usage }];
      }),
    })),
  };
}

function usageOf({ cpu, memory }: Sample): Usage | undefined {
  const timeMs = Date.parse(String(cpu?.time));
  const cpuNanoSeconds = Number(cpu?.usageCoreNanoSeconds);
  const memoryBytes = Number(memory?.workingSetBytes);
  return [timeMs, cpuNanoSeconds, memoryBytes].every(Number.isFinite)
    ? { timeMs, cpuNanoSeconds, memoryBytes }
    : undefined;
}
