import { spawn } from 'node:child_process';

/** A program could not be started, exited with a code other than 0, or exceeded its time limit. */
export class ProgramError extends Error {
  /** Undefined when the program did not exit by itself. */
  readonly exitCode: number | undefined;
  readonly stdout: string;

  constructor(message: string, exitCode: number | undefined, stdout: string) {
    super(message);
    this.name = 'ProgramError';
    this.exitCode = exitCode;
    this.stdout = stdout;
  }
}

/** Runs a program and waits until it exits. Returns its standard output. @throws ProgramError */
export type RunProgram = (program: string, words: readonly string[], input?: Buffer) => Promise<Buffer>;

const timeoutMs = 120_000;
const maxText = 2_000;

/** Runs programs of this machine. A program that runs longer than two minutes is killed. */
export const runProgram: RunProgram = (program, words, input) =>
  new Promise((resolve, reject) => {
    const child = spawn(program, words, { stdio: ['pipe', 'pipe', 'pipe'] });
    // The timeout of `spawn` is not used: its timer remains active when the program does not exist, and keeps this
    // process alive.
    // Not injected: a program takes real time.
    const deadline = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    const stdout: Buffer[] = [];
    let stderr = '';
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => {
      if (stderr.length < maxText) stderr += String(chunk);
    });
    child.once('error', (error) => {
      clearTimeout(deadline);
      reject(new ProgramError(`${program}: ${error.message}`, undefined, ''));
    });
    child.once('close', (code, signal) => {
      clearTimeout(deadline);
      const output = Buffer.concat(stdout);
      if (code === 0) return resolve(output);
      const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
      const text = stderr.trim().slice(0, maxText);
      reject(new ProgramError(`${program}: ${text === '' ? how : text}`, code ?? undefined, output.toString('utf8')));
    });
    // A program that does not read its input has not failed.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  });
