import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.Properties;

/** What reporting tools do through JDBC: their metadata calls, then each question of a file. */
public class JdbcReport {
  public static void main(String[] arguments) throws Exception {
    Properties properties = new Properties();
    properties.setProperty("user", "alice");
    properties.setProperty("password", arguments[1]);
    properties.setProperty("sslmode", "verify-full");
    properties.setProperty("sslrootcert", arguments[2]);
    properties.setProperty("ApplicationName", "report");
    String url = "jdbc:postgresql://localhost:" + arguments[0] + "/sqlrs?prepareThreshold=1";
    try (Connection connection = DriverManager.getConnection(url, properties)) {
      connection.setReadOnly(true);
      look(connection.getMetaData());
      for (String text : Files.readString(Path.of(arguments[3])).split(";\n")) {
        if (!text.isBlank()) {
          ask(connection, text);
        }
      }
      between(connection);
    }
  }

  private static void look(DatabaseMetaData metadata) throws SQLException {
    String[] kinds = {"TABLE", "VIEW", "PARTITIONED TABLE", "FOREIGN TABLE", "MATERIALIZED VIEW"};
    show("tables", metadata.getTables(null, "main", "%", kinds), "TABLE_NAME");
    show("columns", metadata.getColumns(null, "main", "visit", "%"), "COLUMN_NAME");
    show("key", metadata.getPrimaryKeys(null, "main", "visit"), "COLUMN_NAME");
    show("references", metadata.getImportedKeys(null, "main", "visit"), "PKTABLE_NAME");
    show("referenced", metadata.getExportedKeys(null, "main", "ward"), "FKTABLE_NAME");
    show("cross", metadata.getCrossReference(null, "main", "ward", null, "main", "visit"), "FKCOLUMN_NAME");
    show("row", metadata.getBestRowIdentifier(null, "main", "visit", 2, true), "COLUMN_NAME");
    all(metadata.getSchemas());
    all(metadata.getCatalogs());
    all(metadata.getTableTypes());
    all(metadata.getIndexInfo(null, "main", "visit", false, true));
    all(metadata.getColumnPrivileges(null, "main", "visit", "%"));
    all(metadata.getTablePrivileges(null, "main", "%"));
    all(metadata.getFunctions(null, "main", "%"));
    all(metadata.getProcedures(null, "main", "%"));
    all(metadata.getVersionColumns(null, "main", "visit"));
    all(metadata.getUDTs(null, "main", "%", null));
    all(metadata.getClientInfoProperties());
    System.out.println("product " + metadata.getDatabaseProductName());
  }

  private static void ask(Connection connection, String text) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(text)) {
      statement.setMaxRows(2000);
      statement.setFetchSize(500);
      statement.setQueryTimeout(60);
      ResultSetMetaData described = statement.getMetaData();
      for (int time = 0; time < 2; time++) {
        StringBuilder said = new StringBuilder("asked ").append(described.getColumnCount());
        try (ResultSet rows = statement.executeQuery()) {
          int count = 0;
          while (rows.next()) {
            count++;
            for (int column = 1; column <= described.getColumnCount(); column++) {
              rows.getObject(column);
            }
          }
          System.out.println(said.append(" ").append(count > 0));
        }
      }
    }
  }

  private static void between(Connection connection) throws SQLException {
    String text = "SELECT count(*) FROM main.visit WHERE day >= ? AND day < ? AND seen < ?";
    try (PreparedStatement statement = connection.prepareStatement(text)) {
      statement.setObject(1, LocalDate.of(2024, 1, 1));
      statement.setDate(2, java.sql.Date.valueOf("2024-02-01"));
      statement.setObject(3, LocalDateTime.of(2030, 1, 1, 0, 0));
      try (ResultSet rows = statement.executeQuery()) {
        rows.next();
        System.out.println("between " + rows.getLong(1));
      }
    }
  }

  private static void show(String title, ResultSet rows, String column) throws SQLException {
    StringBuilder said = new StringBuilder(title);
    try (rows) {
      while (rows.next()) {
        said.append(" ").append(rows.getString(column));
      }
    }
    System.out.println(said);
  }

  private static void all(ResultSet rows) throws SQLException {
    try (rows) {
      while (rows.next()) {
        rows.getObject(1);
      }
    }
  }
}
