// Sends a mail with nodemailer: node nodemailer.cjs HOST PORT RECIPIENT SUBJECT [login]
const { createTransport } = require("nodemailer");

const [host, port, to, subject, login] = process.argv.slice(2);
// A sink has a certificate that it signed itself.
const auth = login ? { auth: { user: "any", pass: "any password" }, tls: { rejectUnauthorized: false } } : { ignoreTLS: true };
createTransport({ host, port: Number(port), ...auth })
  .sendMail({ from: "app@client.example", to, subject, text: "Hello." })
  .catch((error) => {
    console.error(error.response ?? error.message);
    process.exitCode = 1;
  });
