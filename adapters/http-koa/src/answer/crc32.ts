/** The polynomial of CRC-32 in reflected bit order: the highest bit stands for x^0. */
const polynomial = 0xedb88320;
const one = 0x80000000;

/** Product of two polynomials modulo that of CRC-32. */
function product(a: number, b: number): number {
  let sum = 0;
  let shifted = b;
  for (let bit = one; bit !== 0; bit >>>= 1) {
    if ((a & bit) !== 0) sum ^= shifted;
    shifted = (shifted & 1) === 0 ? shifted >>> 1 : (shifted >>> 1) ^ polynomial;
  }
  return sum >>> 0;
}

/** x^(2^n); x has the order 2^32 - 1, so the 32 of them repeat. */
const powers = [one >>> 1];
while (powers.length < 32) {
  const last = powers[powers.length - 1] as number;
  powers.push(product(last, last));
}

/** What {@link joinedCrc32} needs to know of the length of the second part. */
export function crc32Shift(bytes: number): number {
  let shift = one;
  // Eight bits a byte: the exponent begins at 2^3.
  for (let rest = bytes, n = 3; rest > 0; rest = Math.floor(rest / 2), n += 1) {
    if (rest % 2 === 1) shift = product(shift, powers[n % 32] as number);
  }
  return shift;
}

/** CRC-32 of two parts one after the other, from those of each and the {@link crc32Shift} of the second. */
export function joinedCrc32(first: number, second: number, secondShift: number): number {
  return (product(first, secondShift) ^ second) >>> 0;
}
