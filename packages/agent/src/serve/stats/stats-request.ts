import { parseInstant } from '@keelson/core';
import { parseJsonObject } from '@keelson/core/internal';
import { type AgentRequest, HttpProblem, readBody } from '../http/request.ts';
import type { SampleRange } from './container-info.ts';

/** A request for statistics of containers. */
export interface StatsRequest {
  /** A name that begins with `/`; `/` is the host. */
  readonly containerName: string;
  readonly subcontainers: boolean;
  readonly range: SampleRange;
}

const maxBodyBytes = 16_384;
const defaultCount = 60;

function timeOf(body: Record<string, unknown>, field: string, missing: number): number {
  const value = body[field];
  // Go encodes an unset time as the year 1.
  if (value === undefined || value === null || value === '' || value === '0001-01-01T00:00:00Z') return missing;
  const instant = typeof value === 'string' ? parseInstant(value) : undefined;
  if (instant === undefined) throw new HttpProblem(400, `${field} must be an RFC 3339 time`);
  return instant.seconds * 1000 + Math.floor(instant.nanos / 1_000_000);
}

async function fields(request: AgentRequest): Promise<Record<string, unknown>> {
  const text = (await readBody(request.incoming, maxBodyBytes)).toString().trim();
  if (text === '') return {};
  const value = parseJsonObject(text);
  if (value === undefined) throw new HttpProblem(400, 'the body must be a JSON object');
  return value;
}

/**
 * Reads the body, which may be empty: `containerName`, `num_stats` (default 60), `start`, `end`, `subcontainers`.
 *
 * @throws HttpProblem 400, 413
 */
export async function readStatsRequest(request: AgentRequest): Promise<StatsRequest> {
  const body = await fields(request);
  const { containerName = '', subcontainers = false, num_stats: count = defaultCount } = body;
  if (typeof containerName !== 'string') throw new HttpProblem(400, 'containerName must be a string');
  if (typeof subcontainers !== 'boolean') throw new HttpProblem(400, 'subcontainers must be true or false');
  if (typeof count !== 'number' || !Number.isInteger(count) || count < -1) {
    throw new HttpProblem(400, 'num_stats must be a whole number, -1 for all');
  }
  return {
    containerName: `/${containerName.replace(/^\/+|\/+$/g, '')}`,
    subcontainers,
    range: {
      count: count === -1 ? Number.POSITIVE_INFINITY : count,
      startMs: timeOf(body, 'start', Number.NEGATIVE_INFINITY),
      endMs: timeOf(body, 'end', Number.POSITIVE_INFINITY),
    },
  };
}
