#!/usr/bin/env node
import { main } from '../main.ts';

const terminated = new Promise<void>((resolve) => {
  process.once('SIGTERM', () => resolve());
  process.once('SIGINT', () => resolve());
});

process.exitCode = await main(process.argv.slice(2), {
  stdout: (text) => process.stdout.write(text),
  stderr: (text) => process.stderr.write(text),
  terminated,
  logRoot: process.env['KEELSON_AGENT_LOG_ROOT'],
  runtime: process.env['KEELSON_AGENT_RUNTIME'],
  runtimeOptions: process.env['KEELSON_AGENT_RUNTIME_OPTIONS'],
  criSocket: process.env['KEELSON_AGENT_CRI_SOCKET'],
  serviceProxy: process.env['KEELSON_AGENT_SERVICE_PROXY'],
  swapsPath: '/proc/swaps',
  sysctlRoot: process.env['KEELSON_AGENT_SYSCTL_ROOT'] ?? '/proc/sys',
  cgroupRoot: process.env['KEELSON_AGENT_CGROUP_ROOT'] ?? '/sys/fs/cgroup',
});
