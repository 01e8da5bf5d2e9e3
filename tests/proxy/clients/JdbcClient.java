import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/** Counts through pgjdbc: statements, server-side prepared ones, metadata, errors. */
public class JdbcClient {
  public static void main(String[] arguments) throws Exception {
    Properties properties = new Properties();
    properties.setProperty("user", "carol");
    properties.setProperty("password", arguments[1]);
    properties.setProperty("ssl", "true");
    properties.setProperty("sslmode", "verify-full");
    properties.setProperty("sslrootcert", arguments[2]);
    String url = "jdbc:postgresql://localhost:" + arguments[0] + "/sqlrs";
    try (Connection connection = DriverManager.getConnection(url, properties)) {
      try (Statement statement = connection.createStatement()) {
        System.out.println("simple " + one(statement.executeQuery("SELECT count(*) FROM edge")));
        System.out.println("warning " + (statement.getWarnings() != null));
      }
      String sql = "SELECT count(*) FROM edge WHERE src = ?";
      try (PreparedStatement prepared = connection.prepareStatement(sql)) {
        List<Long> answers = new ArrayList<>();
        for (int source = 0; source < 8; source++) {
          prepared.setLong(1, source);
          answers.add(one(prepared.executeQuery()));
        }
        System.out.println("prepared " + answers);
      }
      String born = "SELECT count(*) FROM person WHERE born >= ? AND born < ? AND id = ANY (?)";
      try (PreparedStatement prepared = connection.prepareStatement(born)) {
        List<Long> answers = new ArrayList<>();
        // More often than the driver takes to change to a statement of the server's.
        for (int time = 0; time < 8; time++) {
          prepared.setDate(1, java.sql.Date.valueOf("1815-12-10"));
          prepared.setTimestamp(2, java.sql.Timestamp.valueOf("1815-12-11 00:00:00"));
          prepared.setArray(3, connection.createArrayOf("int4", new Integer[] {1, 2, 3 + time}));
          answers.add(one(prepared.executeQuery()));
          prepared.setObject(1, java.time.LocalDate.of(1815, 12, 11));
          prepared.setObject(3, new int[] {1});
          answers.add(one(prepared.executeQuery()));
        }
        System.out.println("dates and lists " + answers);
      }
      try (PreparedStatement prepared =
          connection.prepareStatement("SELECT count(*) FROM person WHERE name = ANY (?)")) {
        prepared.setArray(1, connection.createArrayOf("text", new String[] {"A, \"B\"", "Ada"}));
        System.out.println("names " + one(prepared.executeQuery()));
      }
      DatabaseMetaData metadata = connection.getMetaData();
      System.out.println("tables " + column(metadata.getTables(null, "public", "%", null), "TABLE_NAME"));
      System.out.println("columns " + column(metadata.getColumns(null, null, "edge", null), "COLUMN_NAME"));
      System.out.println("key " + column(metadata.getPrimaryKeys(null, null, "edge"), "COLUMN_NAME"));
      column(metadata.getIndexInfo(null, null, "edge", false, true), "INDEX_NAME");
      column(metadata.getImportedKeys(null, null, "edge"), "FKTABLE_NAME");
      column(metadata.getSchemas(), "TABLE_SCHEM");
      column(metadata.getTypeInfo(), "TYPE_NAME");
      column(metadata.getTablePrivileges(null, null, "edge"), "PRIVILEGE");
      connection.setAutoCommit(false);
      try (Statement statement = connection.createStatement()) {
        statement.setFetchSize(1);
        System.out.println("fetched " + one(statement.executeQuery("SELECT count(*) FROM edge")));
        statement.executeQuery("SELECT src FROM edge");
      } catch (SQLException problem) {
        System.out.println("refused " + problem.getSQLState());
      }
      connection.rollback();
      try (Statement statement = connection.createStatement()) {
        System.out.println("after " + one(statement.executeQuery("SELECT 1")));
      }
      connection.commit();
    }
  }

  private static long one(ResultSet rows) throws SQLException {
    try (rows) {
      rows.next();
      long value = rows.getLong(1);
      rows.next();
      return value;
    }
  }

  private static List<String> column(ResultSet rows, String name) throws SQLException {
    List<String> values = new ArrayList<>();
    try (rows) {
      while (rows.next()) {
        values.add(rows.getString(name));
      }
    }
    return values;
  }
}
